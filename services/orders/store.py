"""The view: every order on the partitions this instance holds, and the requests that wait for one.

The view is a fold over topic `orders`, with the verdicts from `order-validations` beside: both
are read from the beginning when a partition is taken over and followed from there, so it needs
no changelog of its own. An event that this instance writes is added when it is committed, and
read again from the topic: an event whose version is already here changes nothing.

Events are kept as the bytes they came in, so an order of hundreds of lines costs no objects.

Waiting: a request looks the order up and registers without an `await` in between, and every change
of the order wakes all requests that wait for it. So no change is missed between look-up and wait,
and any number of requests may wait for one order.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from services.orders.domain import OrderState


@dataclass(slots=True)
class StoredOrder:
    """Invariant: `events` are consecutive; version and state are those of the last one.

    The first is version 1 unless the topic's retention has taken it. Of each check there is the
    first verdict, whenever it came.
    """

    version: int
    state: OrderState
    events: list[bytes] = field(default_factory=list)
    checks: dict[str, bytes] = field(default_factory=dict)


class NotHeldError(Exception):
    """This instance does not hold the partition of the order."""


class OrderView:
    """Orders by partition and id."""

    def __init__(self) -> None:
        self._partitions: dict[int, dict[str, StoredOrder]] = {}
        self._loading: dict[int, dict[str, StoredOrder]] = {}
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}

    def start_loading(self, partitions: set[int]) -> None:
        """Take events of these partitions; readers see them from `show_loaded` on."""
        self._loading = {partition: {} for partition in partitions}

    def show_loaded(self) -> None:
        self._partitions, self._loading = self._loading, {}

    def forget(self) -> None:
        """Drop everything; requests that wait get NotHeldError."""
        self._partitions, self._loading = {}, {}
        for order_id in list(self._waiters):
            self._wake(order_id)

    def holds(self, partition: int) -> bool:
        return partition in self._partitions

    def get(self, partition: int, order_id: str) -> StoredOrder | None:
        """Return the order, None if there is none; raise NotHeldError."""
        orders = self._partitions.get(partition)
        if orders is None:
            raise NotHeldError(f"partition {partition} is not held here")
        return orders.get(order_id)

    def has(self, partition: int, order_id: str, event: bytes | None) -> bool:
        """Tell whether an order has this very event."""
        orders = self._loading.get(partition, self._partitions.get(partition, {}))
        order = orders.get(order_id)
        return order is not None and event in order.events

    def apply(
        self, partition: int, order_id: str, version: int, state: OrderState, event: bytes
    ) -> bool:
        """Add one event; return False if it is not the next one of its order."""
        orders = self._loading.get(partition, self._partitions.get(partition))
        if orders is None:
            return False
        order = orders.setdefault(order_id, StoredOrder(version - 1, state))
        if version != order.version + 1:
            return False
        order.events.append(event)
        order.version, order.state = version, state
        self._wake(order_id)
        return True

    def apply_check(self, partition: int, order_id: str, check: str, verdict: bytes) -> bool:
        """Add the verdict of one check; return False if the order is not here."""
        orders = self._loading.get(partition, self._partitions.get(partition, {}))
        order = orders.get(order_id)
        if order is not None and check not in order.checks:
            order.checks[check] = verdict
            self._wake(order_id)
        return order is not None

    async def wait_for(
        self,
        partition: int,
        order_id: str,
        is_enough: Callable[[StoredOrder], bool],
        timeout_seconds: float,
    ) -> StoredOrder | None:
        """Return the order when it satisfies the condition, or as it is when time is over."""
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        while True:
            order = self.get(partition, order_id)
            if order is not None and is_enough(order):
                return order
            if not await self._sleep(order_id, deadline):
                return self.get(partition, order_id)

    async def _sleep(self, order_id: str, deadline: float) -> bool:
        """Sleep until the order changes; return False when the deadline came first."""
        loop = asyncio.get_running_loop()
        if deadline <= loop.time():
            return False
        change: asyncio.Future[None] = loop.create_future()
        waiters = self._waiters.setdefault(order_id, set())
        waiters.add(change)
        try:
            async with asyncio.timeout_at(deadline):
                await change
        except TimeoutError:
            return False
        finally:
            waiters.discard(change)
            if not waiters and self._waiters.get(order_id) is waiters:
                del self._waiters[order_id]
        return True

    def _wake(self, order_id: str) -> None:
        for change in self._waiters.pop(order_id, ()):
            if not change.done():
                change.set_result(None)
