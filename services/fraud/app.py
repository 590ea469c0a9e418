"""Fraud: orders in, verdicts out, one history per customer.

`orders` is keyed by order id, so one customer's orders lie on any partition and, with several
instances, at any instance. So the service works in two steps within one group:

    orders ─► (1) what matters of a new order, keyed by customer ─► repartition topic
    repartition topic ─► (2) judge against the customer's history ─► order-validations

The repartition topic gives each customer's orders one order and one owner. Step 2 is a fold
over it: two instances that read the same records (one of them believed dead, say) give the same
verdicts. The cost is one more hop per order, a few milliseconds.
"""

import json
from collections.abc import Mapping
from functools import partial

from aiokafka.structs import ConsumerRecord, TopicPartition

from services.common.changelog import Store
from services.common.events import Event, Events
from services.common.kafka import (
    ORDER_VALIDATIONS,
    ORDERS,
    ReadToEnd,
    Topic,
    changelog_of,
    read_to_end,
)
from services.common.outbox import Outbox
from services.common.processor import Inputs, Processor
from services.common.runner import Running
from services.common.settings import Settings
from services.common.telemetry import child_headers
from services.common.verdicts import PASSED, Verdict, VerdictPublisher
from services.fraud.domain import History, from_row, judge, to_row

APPLICATION = "fraud"
BY_CUSTOMER = Topic("fraud-orders-by-customer-repartition")
CHANGELOG = changelog_of(APPLICATION, "customers")
_TOO_MUCH = Verdict("SPENDING_LIMIT", "the customer's orders of this session reach 2000 or more")


class FraudWorker:
    """Both steps. Holds the histories of the customers on its partitions."""

    inputs = (BY_CUSTOMER, ORDERS)
    outputs = (ORDER_VALIDATIONS, CHANGELOG)

    def __init__(self, read_to_end: ReadToEnd, events: Events, publisher: VerdictPublisher) -> None:
        self._events = events
        self._publisher = publisher
        self._orders = events.reader(
            "orders/order_event", "order_id", "state", "ordered_at", "customer_id", "total"
        )
        self._store: Store[History] = Store(CHANGELOG.name, to_row, from_row, read_to_end)

    def connect(self, inputs: Inputs) -> None:
        """It asks nothing of the processor."""

    async def restore(self, held: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        await self._store.restore(held[BY_CUSTOMER.name])
        return {}

    def forget(self) -> None:
        self._store.forget()

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        if record.topic == ORDERS.name:
            await self._pass_on(record, outbox)
        else:
            self._judge(record, outbox)

    async def _pass_on(self, record: ConsumerRecord, outbox: Outbox) -> None:
        order = await self._events.decode(self._orders, record.value)
        if order["state"] == "CREATED":
            headers = child_headers(record.headers, APPLICATION)
            outbox.send(BY_CUSTOMER.name, order["customer_id"], _slim(order), headers)

    def _judge(self, record: ConsumerRecord, outbox: Outbox) -> None:
        order_id, total, ordered_at_ms = json.loads(record.value)
        customer_id = record.key.decode()
        history = self._store.get(record.partition, customer_id) or History()
        changed, passed = judge(history, order_id, total, ordered_at_ms)
        if changed is not history:
            self._store.put(record.partition, customer_id, changed, outbox)
        verdict = PASSED if passed else _TOO_MUCH
        self._publisher.publish(order_id, verdict, record.headers, outbox)

    async def tick(self, timestamp_ms: int, outbox: Outbox) -> None:
        """Nothing is due by the clock: sessions go by event time."""

    def flushed(self) -> None:
        """Nothing waits for that."""


def _slim(order: Event) -> bytes:
    total = int(order["total"].scaleb(4))
    ordered_at_ms = round(order["ordered_at"].timestamp() * 1000)
    return json.dumps([order["order_id"], total, ordered_at_ms]).encode()


async def assemble(settings: Settings, url: str, events: Events, running: Running) -> None:
    writer = await events.writer(ORDER_VALIDATIONS.name, "orders/order_validation")
    publisher = VerdictPublisher("FRAUD", APPLICATION, writer, running.metrics)
    worker = FraudWorker(
        partial(read_to_end, settings.bootstrap_servers, show=running.metrics.show_restoring),
        events,
        publisher,
    )
    running.processor = Processor(APPLICATION, settings, worker, running.metrics)
