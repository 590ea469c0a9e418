"""Sends orders on by customer and by product.

Tables and windows need all records of a key in one partition, and `orders` is keyed by order id. So
each event goes on keyed by customer (the same bytes), and a VALIDATED order also as one sale per
product. Both topics have as many partitions as `orders`, `customers` and the changelogs: Faust
joins by partition number.

An event is known by (order id, version). The table keeps each order's last version, so an event
that was written to `orders` twice goes on once. Its changelog forgets with `orders` itself, after
seven days: later than that no event can be there twice.
"""

import json
from decimal import Decimal

from streams.records import (
    ORDERS,
    ORDERS_BY_CUSTOMER,
    SALES_BY_PRODUCT,
    Event,
    Origin,
    Outgoing,
    Row,
    Step,
    to_ms,
)
from streams.topology import Record, Runtime, TableT

READER = "order-flow"


def spread(row: Row | None, event: Event, value: bytes, origin: Origin) -> Step:
    """Send an event on unless its version was seen."""
    if row is not None and event["version"] <= row["version"]:
        return Step()
    outgoing = [Outgoing(ORDERS_BY_CUSTOMER, event["customer_id"], value, origin=origin)]
    if event["state"] == "VALIDATED":
        outgoing += sales(event, origin)
    return Step({"version": event["version"]}, outgoing)


def sales(event: Event, origin: Origin) -> list[Outgoing]:
    """Return one sale per product of an order, however many lines the product has."""
    quantities: dict[str, int] = {}
    revenues: dict[str, Decimal] = {}
    for line in event["lines"]:
        product_id = line["product_id"]
        quantities[product_id] = quantities.get(product_id, 0) + line["quantity"]
        revenues[product_id] = (
            revenues.get(product_id, Decimal()) + line["quantity"] * line["unit_price"]
        )
    about = {"order_id": event["order_id"], "ordered_at_ms": to_ms(event["ordered_at"])}
    return [
        Outgoing(
            SALES_BY_PRODUCT,
            product_id,
            json.dumps(
                {**about, "quantity": quantity, "revenue": str(revenues[product_id])}
            ).encode(),
            origin=origin,
        )
        for product_id, quantity in quantities.items()
    ]


def add_agents(runtime: Runtime[TableT], table: TableT) -> None:
    """Declare the agent; its body decodes, calls the pure function, and hands over."""

    async def on_order(record: Record) -> None:
        event = await runtime.codec.decode("orders/order_event", record.value)
        row = table.row(event["order_id"])
        step = spread(row, event, record.value, record.origin)
        await runtime.apply(table, event["order_id"], step, record)

    runtime.add_agent(READER, ORDERS, table, on_order)
