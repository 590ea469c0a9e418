"""Shipments lower the stock in the topic, and the ledger is not misled by what it wrote itself."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal

from common.process.telemetry import Metrics, new_traceparent
from common.processing.outbox import Outbox
from services.inventory.app import InventoryWorker
from services.orders.desk import created_event
from services.orders.requests import OrderRequest
from services.verdicts import VerdictPublisher
from tests.lib.pipeline_bus import Bus, decode_all, fake_events, record

TRACE = new_traceparent("1" * 32, "2" * 16)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_the_level_of_an_older_shipment_does_not_bring_goods_back() -> None:
    async def check() -> None:
        events = fake_events()
        levels = await events.writer("warehouse-inventory", "inventory/stock_level")
        orders = await events.writer("orders", "orders/order_event")
        verdicts = await events.writer("order-validations", "orders/order_validation")
        publisher = VerdictPublisher("INVENTORY", "inventory", verdicts, Metrics())
        worker = InventoryWorker(Bus().read_to_end, events, publisher, levels)
        stock = levels.encode({"product_id": "apple", "quantity": 10, "updated_at": NOON})
        outbox = Outbox()
        await worker.handle(record("warehouse-inventory", 0, 0, b"apple", stock), outbox)
        for order_id in ("a", "b"):
            line = {"product_id": "apple", "quantity": 2, "unit_price": Decimal(1)}
            request = OrderRequest("c", None, [line], Decimal(2), NOON)
            created = created_event(order_id, request, None, TRACE)
            created["created_at"] = NOON
            for state in ("CREATED", "SHIPPED", "SHIPPED"):
                value = orders.encode({**created, "state": state})
                await worker.handle(record("orders", 0, 0, order_id.encode(), value), outbox)
        ledger = worker._store.ledger
        assert (ledger.stock, +ledger.reserved) == ({"apple": 6}, {})

        written = [
            record(one.topic, 0, 0, one.key, one.value, one.headers)
            for one in outbox.take()
            if one.topic == "warehouse-inventory"
        ]
        found = await decode_all(events, events.reader("inventory/stock_level"), written)
        assert [(one["product_id"], one["quantity"]) for one in found] == [
            ("apple", 8),
            ("apple", 6),
        ]
        await worker.handle(written[0], outbox)
        assert ledger.stock == {"apple": 6}
        await worker.handle(record("warehouse-inventory", 0, 0, b"apple", stock), outbox)
        assert ledger.stock == {"apple": 10}, "a stock-taking counts"

    asyncio.run(check())
