"""Orders with their customer's level, and one topic per level.

The level is a table-table join by customer: the agreed level in the customer's record (topic
`customers`), or else the level for the sum of VALIDATED orders. An order then reads its customer's
level from the same row. This is a stream-table join, which is correct because
`streams-orders-by-customer` and `customers` have the same keys and the same number of partitions.
An order gets the customer's level at that moment. Two orders of one customer that arrive at the
same time may be handled in either order.
"""

from decimal import Decimal
from typing import Any

from streams import joins
from streams.records import (
    CUSTOMERS,
    ORDERS_BY_CUSTOMER,
    Event,
    Origin,
    Outgoing,
    Row,
    Step,
    is_applied,
    with_applied,
)
from streams.topology import Record, Runtime, TableT

LEVELS = ("BRONZE", "SILVER", "GOLD", "PLATINUM")
_SPENT_FOR_LEVEL = (
    (Decimal(10_000), "PLATINUM"),
    (Decimal(2_000), "GOLD"),
    (Decimal(500), "SILVER"),
)
LEVEL_TOPICS = {level: f"orders-{level.lower()}" for level in LEVELS}
_NOTHING_SPENT = {"orders": 0, "revenue": "0", "by_level": {}}


def level_of(customer: Row | None, spending: Row | None) -> str:
    """Join both tables: return the agreed level, or else the level for the spending."""
    if customer and customer["level"]:
        return str(customer["level"])
    spent = Decimal(spending["revenue"]) if spending else Decimal()
    return next((level for least, level in _SPENT_FOR_LEVEL if spent >= least), "BRONZE")


def see_customer(row: Row | None, event: Event, origin: Origin) -> Step:
    """Store the data of a customer's record in the row."""
    if is_applied(row, origin):
        return Step()
    known = {name: event[name] for name in ("name", "country", "level")}
    return Step(with_applied(joins.join_tables(row, "left", known, level_of), origin, row))


def see_order(row: Row | None, event: Event, origin: Origin) -> Step:
    """Send a new order to its level's topic; add a VALIDATED order to the spending."""
    if is_applied(row, origin):
        return Step()
    spending: Row = (row or {}).get("right") or _NOTHING_SPENT
    outgoing = []
    if event["state"] == "CREATED":
        level = str(row["joined"]) if row else level_of(None, None)
        outgoing = [_routed(row, event, level, origin)]
        by_level = {**spending["by_level"], level: spending["by_level"].get(level, 0) + 1}
        spending = {**spending, "by_level": by_level}
    elif event["state"] == "VALIDATED":
        revenue = str(Decimal(spending["revenue"]) + event["total"])
        spending = {**spending, "orders": spending["orders"] + 1, "revenue": revenue}
    after = with_applied(joins.join_tables(row, "right", spending, level_of), origin, row)
    return Step(after, outgoing)


def _routed(row: Row | None, event: Event, level: str, origin: Origin) -> Outgoing:
    customer: dict[str, Any] = (row or {}).get("left") or {}
    value = {
        "order_id": event["order_id"],
        "customer_id": event["customer_id"],
        "customer_name": customer.get("name"),
        "country": event["country"] or customer.get("country"),
        "level": level,
        "ordered_at": event["ordered_at"],
        "total": event["total"],
    }
    topic = LEVEL_TOPICS[level]
    return Outgoing(topic, event["order_id"], value, "orders/enriched_order", origin)


def add_agents(runtime: Runtime[TableT], table: TableT) -> None:
    """Declare the agents of both sides."""

    async def on_customer(record: Record) -> None:
        event = await runtime.codec.decode("customers/customer", record.value)
        step = see_customer(table.row(event["customer_id"]), event, record.origin)
        await runtime.apply(table, event["customer_id"], step, record)

    async def on_order(record: Record) -> None:
        event = await runtime.codec.decode("orders/order_event", record.value)
        step = see_order(table.row(event["customer_id"]), event, record.origin)
        await runtime.apply(table, event["customer_id"], step, record)

    writes = tuple(LEVEL_TOPICS.values())
    runtime.add_agent("enrichment-customers", CUSTOMERS, table, on_customer, writes)
    runtime.add_agent("enrichment-orders", ORDERS_BY_CUSTOMER, table, on_order, writes)
