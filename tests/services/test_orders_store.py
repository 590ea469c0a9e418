"""The view: versions in order, and waiters of whom none is lost."""

import asyncio

import pytest

from services.orders.domain import OrderState
from services.orders.store import NotHeldError, OrderView, StoredOrder


def view_of(*partitions: int) -> OrderView:
    view = OrderView()
    view.start_loading(set(partitions))
    view.show_loaded()
    return view


def is_validated(order: StoredOrder) -> bool:
    return order.state is OrderState.VALIDATED


def test_events_are_taken_once_and_in_order() -> None:
    view = view_of(0)
    assert view.apply(0, "o", 1, OrderState.CREATED, b"1")
    assert not view.apply(0, "o", 1, OrderState.CREATED, b"1 again")
    assert not view.apply(0, "o", 3, OrderState.PAID, b"3")
    assert view.apply(0, "o", 2, OrderState.VALIDATED, b"2")
    order = view.get(0, "o")
    assert order is not None
    assert (order.state, order.version, order.events) == (OrderState.VALIDATED, 2, [b"1", b"2"])


def test_order_whose_first_event_is_gone_is_taken_from_where_it_begins() -> None:
    view = view_of(0)
    assert view.apply(0, "o", 2, OrderState.VALIDATED, b"2")
    assert view.apply(0, "o", 3, OrderState.PAID, b"3")


def test_an_event_that_is_here_is_known_by_its_bytes() -> None:
    view = OrderView()
    view.start_loading({0})
    view.apply(0, "o", 1, OrderState.CREATED, b"1")
    assert view.has(0, "o", b"1"), "while it is loading, too"
    view.show_loaded()
    assert view.has(0, "o", b"1")
    assert not view.has(0, "o", b"2")
    assert not view.has(0, "o", None)
    assert not view.has(0, "p", b"1")
    assert not view.has(1, "o", b"1")


def test_partition_that_is_not_held_is_not_an_unknown_order() -> None:
    view = view_of(0)
    assert view.get(0, "o") is None
    with pytest.raises(NotHeldError):
        view.get(1, "o")
    assert not view.apply(1, "o", 1, OrderState.CREATED, b"")


def test_partition_that_is_loading_is_not_shown() -> None:
    view = OrderView()
    view.start_loading({0})
    view.apply(0, "o", 1, OrderState.CREATED, b"1")
    assert not view.holds(0)
    view.show_loaded()
    assert view.get(0, "o") is not None


def test_any_number_of_waiters_is_woken() -> None:
    async def check() -> None:
        view = view_of(0)
        waiting = [
            asyncio.ensure_future(view.wait_for(0, "o", is_validated, 30)) for _ in range(50)
        ]
        await asyncio.sleep(0)
        view.apply(0, "o", 1, OrderState.CREATED, b"1")
        await asyncio.sleep(0)
        view.apply(0, "o", 2, OrderState.VALIDATED, b"2")
        orders = await asyncio.gather(*waiting)
        assert all(order is not None and order.version == 2 for order in orders)
        assert not view._waiters

    asyncio.run(check())


def test_change_between_look_up_and_wait_is_not_lost() -> None:
    async def check() -> None:
        view = view_of(0)

        def is_enough(order: StoredOrder) -> bool:
            # The change comes from another task as soon as this one gives way.
            asyncio.get_running_loop().call_soon(view.apply, 0, "o", 2, OrderState.VALIDATED, b"2")
            return is_validated(order)

        view.apply(0, "o", 1, OrderState.CREATED, b"1")
        order = await view.wait_for(0, "o", is_enough, 30)
        assert order is not None
        assert order.version == 2

    asyncio.run(check())


def test_waiter_that_gives_up_gets_the_order_as_it_is() -> None:
    async def check() -> None:
        view = view_of(0)
        assert await view.wait_for(0, "o", is_validated, 0) is None
        view.apply(0, "o", 1, OrderState.CREATED, b"1")
        order = await view.wait_for(0, "o", is_validated, 0.001)
        assert order is not None
        assert order.version == 1
        assert not view._waiters

    asyncio.run(check())


def test_waiter_is_told_when_the_partition_moves_away() -> None:
    async def check() -> None:
        view = view_of(0)
        waiting = asyncio.ensure_future(view.wait_for(0, "o", is_validated, 30))
        await asyncio.sleep(0)
        view.forget()
        with pytest.raises(NotHeldError):
            await waiting

    asyncio.run(check())


def test_waiter_that_is_cancelled_leaves_nothing_behind() -> None:
    async def check() -> None:
        view = view_of(0)
        waiting = asyncio.ensure_future(view.wait_for(0, "o", is_validated, 30))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert not view._waiters

    asyncio.run(check())
