"""Records of the pipeline's topics in Spark's form, with their events."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from common.registry import loader
from common.registry.wire import EventWriter

SCHEMA_IDS = {
    "orders": (11, "orders/order_event"),
    "order-validations": (12, "orders/order_validation"),
    "order-decisions": (13, "orders/order_decision"),
    "products": (14, "catalogue/product"),
}
RECORDS = "topic string, partition int, offset bigint, timestamp timestamp, value binary"
NOON = datetime(2011, 2, 1, 12, 0, tzinfo=UTC)

Record = tuple[str, int, int, datetime, bytes | None]


def fetch_schema(schema_id: int) -> dict[str, Any]:
    """Answer like the registry."""
    return loader.load(dict(SCHEMA_IDS.values())[schema_id])


class RecordMaker:
    """Gives each record the next offset of its topic, and a time one second after the last."""

    def __init__(self) -> None:
        self._offset = 0

    def record(self, topic: str, value: bytes | None) -> Record:
        self._offset += 1
        appended_at = NOON + timedelta(seconds=self._offset)
        return (topic, self._offset % 6, self._offset, appended_at, value)

    def event(self, topic: str, **event: Any) -> Record:
        schema_id, name = SCHEMA_IDS[topic]
        return self.record(topic, EventWriter(loader.load(name), schema_id).encode(event))

    def order(self, order_id: str, version: int, state: str, **fields: Any) -> Record:
        """Return an order event, by default with one line of 2 x 1.25."""
        lines = [{"product_id": "85123A", "quantity": 2, "unit_price": Decimal("1.25")}]
        event = {
            "reasons": [],
            "correlation_id": "0" * 32,
            "request_digest": None,
            "ordered_at": NOON,
            "created_at": NOON,
            "occurred_at": NOON + timedelta(milliseconds=100 * version),
            "customer_id": "12345",
            "country": "United Kingdom",
            "total": Decimal("2.50"),
            "lines": lines,
        }
        return self.event(
            "orders", order_id=order_id, version=version, state=state, **event | fields
        )

    def verdict(self, order_id: str, check: str, result: str = "PASS") -> Record:
        code, reason = (None, None) if result == "PASS" else ("TOO_MUCH", "in words")
        return self.event(
            "order-validations",
            order_id=order_id,
            check=check,
            result=result,
            code=code,
            reason=reason,
            validator="test",
        )

    def decision(self, order_id: str, decision: str) -> Record:
        return self.event("order-decisions", order_id=order_id, decision=decision, reasons=[])

    def product(self, product_id: str, description: str, minute: int) -> Record:
        updated_at = NOON + timedelta(minutes=minute)
        return self.event(
            "products", product_id=product_id, description=description, updated_at=updated_at
        )
