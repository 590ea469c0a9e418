"""Events of orders for a worker on the in-memory bus."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from common.process.telemetry import new_traceparent, trace_headers
from common.registry.events import Events
from tests.lib.pipeline_bus import Bus, Group, Instance

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TRACE = new_traceparent("1" * 32, "2" * 16)
LINE = {"product_id": "item-001", "quantity": 2, "unit_price": Decimal("2.5500")}


class Always:
    """A random source with which a worker handles all records and commits."""

    def random(self) -> float:
        return 0.0

    def randint(self, low: int, high: int) -> int:
        return high


def order_event(order_id: str, state: str, version: int, **changes: Any) -> dict[str, Any]:
    event = {
        "order_id": order_id,
        "version": version,
        "state": state,
        "reasons": [],
        "correlation_id": "1" * 32,
        "ordered_at": NOON,
        "created_at": NOON,
        "occurred_at": NOON,
        "customer_id": "c",
        "country": None,
        "total": Decimal("5.1000"),
        "lines": [LINE],
    }
    return {**event, **changes}


class Feed:
    """One worker with all partitions, and orders for it."""

    def __init__(self, bus: Bus, events: Events, worker: Any) -> None:
        self.bus = bus
        self.events = events
        self.instance = Instance(bus, Group(), worker)

    async def start(self) -> None:
        await self.instance.take(range(6))

    async def write(self, order_id: str, state: str, version: int, **changes: Any) -> None:
        writer = await self.events.writer("orders", "orders/order_event")
        data = writer.encode(order_event(order_id, state, version, **changes))
        self.bus.append("orders", order_id.encode(), data, trace_headers(TRACE))

    async def see(self, order_id: str, state: str, version: int, **changes: Any) -> None:
        """Add an event of an order, and let the worker handle it."""
        await self.write(order_id, state, version, **changes)
        await self.step()

    async def step(self) -> None:
        await self.instance.step(Always())
