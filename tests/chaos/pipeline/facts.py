"""Collects the facts of the final state from their sources."""

import json
from collections import Counter
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

from aiokafka.errors import KafkaError

from common.registry.wire import EventReader
from spark_analytics.serving.layout import connect_reader
from spark_analytics.serving.reader import ServingReader
from tests.chaos.pipeline.checker import Charge, Facts, Placed, Sold
from tests.lib.pipeline_processes import MAILBOX, Pipeline, call

VIEWS = "serving.sqlite"
READ = ("orders", "order-validations", "order-decisions", "payments", "warehouse-inventory")


def collect(
    pipeline: Pipeline, folder: Path, placed: dict[str, Placed], stock_before: dict[str, int]
) -> Facts:
    """Read all sources. `folder` has the services' files."""
    orders = pipeline.events("orders", "orders/order_event")
    verdicts = pipeline.events("order-validations", "orders/order_validation")
    decisions = pipeline.events("order-decisions", "orders/order_decision")
    payments = pipeline.events("payments", "payments/payment")
    notes = pipeline.events("order-confirmations", "mails/mail_sent")
    return Facts(
        placed=dict(placed),
        states={
            one: [(e["version"], e["state"]) for e in events] for one, events in orders.items()
        },
        verdicts={one: [event["check"] for event in events] for one, events in verdicts.items()},
        decisions={one: len(events) for one, events in decisions.items()},
        payments={one: [event["result"] for event in events] for one, events in payments.items()},
        charges={
            one: Charge(amount, is_refunded)
            for one, (amount, is_refunded) in pipeline.charges().items()
        },
        notes=Counter((one, event["state"]) for one, events in notes.items() for event in events),
        mails={_mail_of(file.stem) for file in (folder / MAILBOX).glob("[!.]*.eml")},
        documents=pipeline.documents(),
        stock_before=stock_before,
        stock=_stock(pipeline),
        reserved=_reserved(pipeline),
        dead_letters=sum(_count(pipeline, f"{topic}.dead-letter") for topic in READ),
        products=_products(pipeline) if "streams" in pipeline.urls else None,
        spark=_summary(folder / VIEWS) if "spark" in pipeline.urls else None,
    )


def _mail_of(name: str) -> tuple[str, str]:
    order_id, _, state = name.rpartition(".")
    return order_id, state


def _stock(pipeline: Pipeline) -> dict[str, int]:
    """Return the newest level of each product."""
    reader: EventReader = pipeline.reader("inventory/stock_level")
    levels: dict[str, int] = {}
    for record in pipeline.read("warehouse-inventory"):
        event = pipeline.decode(reader, record.value)
        levels[event["product_id"]] = event["quantity"]
    return levels


def _reserved(pipeline: Pipeline) -> dict[str, int]:
    """Return the reserved units of each product, from the ledger's changelog."""
    rows = {one.key: one.value for one in pipeline.read("inventory-ledger-changelog")}
    reserved: Counter[str] = Counter()
    for value in rows.values():
        row = {} if value is None else json.loads(value)
        if not row.keys() & {"code", "is_released", "is_shipped"}:
            reserved.update(row.get("quantities", {}))
    return dict(reserved)


def _count(pipeline: Pipeline, topic: str) -> int:
    try:
        return len(pipeline.read(topic))
    except KafkaError:
        return 0  # no record was ever dead-lettered


def _products(pipeline: Pipeline) -> dict[str, Sold]:
    """Return the streams' view; empty while partitions move."""
    answer = call("GET", pipeline.urls["streams"] + "/v1/products")
    return {
        one["product_id"]: Sold(one["orders"], one["units"], Decimal(one["revenue"]))
        for one in answer.body.get("products", ())
    }


def _summary(views: Path) -> dict[str, Any]:
    connection = connect_reader(views)
    if connection is None:
        return {}
    with closing(ServingReader(connection)) as reader:
        summary = reader.summary()
    revenue = summary["revenue_validated"]
    return {"orders": summary["orders"], "states": summary["states"], "revenue": revenue}
