"""Which events are kept as objects."""

from services.orders.domain import OrderEvent, OrderState
from services.orders.worker import NewestEvents


def event(order_id: str, version: int = 1, state: OrderState = OrderState.CREATED) -> OrderEvent:
    return {"order_id": order_id, "version": version, "state": state.value}


def test_the_newest_event_of_an_order_is_kept_by_its_version() -> None:
    newest = NewestEvents()
    newest.put(event("a"))
    validated = event("a", 2, OrderState.VALIDATED)
    newest.put(validated)
    assert newest.get("a", 2) is validated
    assert newest.get("a", 1) is None
    assert newest.get("b", 1) is None


def test_an_order_that_has_come_to_rest_is_kept_no_longer() -> None:
    newest = NewestEvents()
    newest.put(event("a", 2, OrderState.VALIDATED))
    newest.put(event("a", 3, OrderState.PAID))
    assert newest.get("a", 2) is None
    assert newest.get("a", 3) is None


def test_those_that_have_waited_longest_make_room() -> None:
    newest = NewestEvents(limit=2)
    for order_id in "ab":
        newest.put(event(order_id))
    newest.put(event("a", 2, OrderState.VALIDATED))
    newest.put(event("c"))
    assert newest.get("b", 1) is None
    assert newest.get("a", 2) is not None
    assert newest.get("c", 1) is not None
    newest.clear()
    assert newest.get("c", 1) is None
