"""Inventory: orders and stock levels in, verdicts out, one ledger.

An order may name any products and is reserved whole or not at all, so all reservations go through
one ledger. One instance of the group holds every partition and the ledger; the others stand by and
take over from the changelog (`single_owner`). So there is no protocol between partitions that could
leave half a reservation, and no two orders that each hold what the other needs.

The price: the check is as fast as one process (some thousands of orders a second, far more than the
rest of the pipeline), more instances make it safer but not faster, and a take-over reads the whole
ledger. An owner that the group has replaced writes nothing more: its transactions name its
generation of the group, and the group refuses an earlier generation.

A stock level may be written after the order that needs it, so the stock levels are read to their
end before an order is refused. Their topic is compacted, so it is its own changelog: the ledger
reads it from the beginning when it takes over, and the ledger's changelog holds only the decisions
about orders.

Shipped goods leave the stock: the new level goes to the same topic, in the transaction that ends
the reservation, so it is lowered once. The ledger ignores levels that it wrote itself, since of two
shipments in a row the first level is old when it is read. A stock-taking gives the level at the
time of its record, and the newest level counts.
"""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.assignment import single_owner
from common.kafka.reading import ReadToEnd, read_to_end
from common.process.clock import timestamp_ms
from common.process.telemetry import child_headers
from common.processing.outbox import Outbox
from common.processing.processor import Processor
from common.processing.service import Running
from common.processing.settings import Settings
from common.processing.worker import Worker
from common.registry.events import Event, Events
from common.registry.wire import EventWriter, MalformedEventError
from schemas.topics import ORDER_VALIDATIONS, ORDERS, WAREHOUSE_INVENTORY
from services.inventory.domain import Entry
from services.inventory.store import CHANGELOG, LedgerStore
from services.verdicts import Verdict, VerdictPublisher

log = logging.getLogger(__name__)

APPLICATION = "inventory"
_ENDED_WITHOUT_DELIVERY = ("FAILED", "CANCELLED")
_OWN = ("written-by", APPLICATION.encode())


class InventoryWorker(Worker):
    """Keeps the ledger by orders and stock levels."""

    inputs = (WAREHOUSE_INVENTORY, ORDERS)
    outputs = (ORDER_VALIDATIONS, WAREHOUSE_INVENTORY, CHANGELOG)

    def __init__(
        self,
        read_to_end: ReadToEnd,
        events: Events,
        publisher: VerdictPublisher,
        stock_writer: EventWriter,
    ) -> None:
        self._read_to_end = read_to_end
        self._store = LedgerStore(read_to_end)
        self._events = events
        self._stock_levels = events.reader("inventory/stock_level", "quantity")
        self._orders = events.reader("orders/order_event", "order_id", "state", "lines")
        self._publisher = publisher
        self._stock_writer = stock_writer

    async def restore(self, partitions: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        stock = [
            TopicPartition(WAREHOUSE_INVENTORY.name, n)
            for n in partitions[WAREHOUSE_INVENTORY.name]
        ]
        if not stock:
            return {}
        await self._store.restore()
        return await self._read_to_end(stock, self._restore_stock)

    async def _restore_stock(self, record: ConsumerRecord) -> None:
        try:
            await self._take_stock(record)
        except MalformedEventError as error:
            log.warning("stock level passed over offset=%d error=%s", record.offset, error)

    def forget(self) -> None:
        self._store.forget()

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        if record.topic == WAREHOUSE_INVENTORY.name:
            if _OWN not in record.headers:
                await self._take_stock(record)
            return
        order = await self._events.decode(self._orders, record.value)
        if order["state"] == "CREATED":
            entry = await self._judge(order, outbox)
            verdict = Verdict(entry.code, entry.reason)
            self._publisher.publish(order["order_id"], verdict, record.headers, outbox)
        elif order["state"] in _ENDED_WITHOUT_DELIVERY:
            released = self._store.ledger.release(order["order_id"])
            if released is not None:
                self._store.put_entry(order["order_id"], released, outbox)
        elif order["state"] == "SHIPPED":
            self._ship(order["order_id"], record, outbox)

    def _ship(self, order_id: str, record: ConsumerRecord, outbox: Outbox) -> None:
        shipped = self._store.ledger.ship(order_id)
        if shipped is None:
            return
        entry, levels = shipped
        self._store.put_entry(order_id, entry, outbox)
        updated_at = datetime.fromtimestamp(record.timestamp / 1000, UTC)
        for product_id, quantity in levels.items():
            self._store.ledger.put_stock(product_id, quantity)
            level = {"product_id": product_id, "quantity": quantity, "updated_at": updated_at}
            headers = [*child_headers(record.headers, APPLICATION), _OWN]
            value = self._stock_writer.encode(level)
            outbox.send(WAREHOUSE_INVENTORY.name, product_id, value, headers)

    async def _take_stock(self, record: ConsumerRecord) -> None:
        quantity = None
        if record.value is not None:
            event = await self._events.decode(self._stock_levels, record.value)
            quantity = event["quantity"]
        self._store.ledger.put_stock(record.key.decode(), quantity)

    async def _judge(self, order: Event, outbox: Outbox) -> Entry:
        order_id = order["order_id"]
        lines = [(line["product_id"], line["quantity"]) for line in order["lines"]]
        entry = self._store.ledger.judge(order_id, lines)
        if entry.code is not None and order_id not in self._store.ledger.entries:
            await self.catch_up(WAREHOUSE_INVENTORY.name)
            entry = self._store.ledger.judge(order_id, lines)
        if order_id not in self._store.ledger.entries:
            self._store.put_entry(order_id, entry, outbox)
        return entry


async def assemble(settings: Settings, url: str, events: Events, running: Running[None]) -> None:
    """Build the worker and its processor, which holds all partitions or none."""
    stock_writer = await events.writer(WAREHOUSE_INVENTORY.name, "inventory/stock_level")
    writer = await events.writer(ORDER_VALIDATIONS.name, "orders/order_validation")
    worker = InventoryWorker(
        partial(read_to_end, settings.kafka, show=running.metrics.show_restoring),
        events,
        VerdictPublisher("INVENTORY", APPLICATION, writer, running.metrics),
        stock_writer,
    )
    running.processor = Processor(APPLICATION, settings, worker, running.metrics)
    running.processor.assignor = single_owner(timestamp_ms())
