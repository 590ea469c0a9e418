"""Repartition orders by customer and by product.

Tables and windows need all records of a key in one partition, but the key of `orders` is the order
id. So each event is sent again with the customer as its key (and the same bytes), and a VALIDATED
order also as one sale per product. Both topics have as many partitions as `orders`, `customers` and
the changelogs, because Faust joins by partition number.

An event is identified by (order id, version). The table stores each order's last version, so an
event that was written to `orders` twice is sent once. Its changelog has the same retention as
`orders`, seven days.
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
    """Send an event again with its new key, unless its version was seen."""
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
    """Declare the agent; its body decodes, calls the pure function, and passes the steps on."""

    async def on_order(record: Record) -> None:
        event = await runtime.codec.decode("orders/order_event", record.value)
        row = table.row(event["order_id"])
        step = spread(row, event, record.value, record.origin)
        await runtime.apply(table, event["order_id"], step, record)

    runtime.add_agent(
        READER, ORDERS, table, on_order, writes=(ORDERS_BY_CUSTOMER, SALES_BY_PRODUCT)
    )
