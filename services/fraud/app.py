"""Fraud: orders in, verdicts out, one history per customer.

`orders` is keyed by order id, so the orders of one customer lie on any partition and, with several
instances, reach any instance. So the service works in two steps within one group:

    orders ─► (1) what matters of a new order, keyed by customer ─► repartition topic
    repartition topic ─► (2) judge against the customer's history ─► order-validations

The repartition topic brings the orders of one customer into one sequence and to one instance. Step
2 is a fold over it: two instances that read the same records, such as one that the group has
replaced, give the same verdicts. The cost is one more hop per order.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.reading import ReadToEnd, read_to_end
from common.kafka.topics import Topic
from common.process.telemetry import Headers, child_headers
from common.processing.changelog import Store, changelog_of
from common.processing.outbox import Outbox
from common.processing.processor import Processor
from common.processing.service import Running
from common.processing.settings import Settings
from common.processing.worker import Worker
from common.registry.events import Event, Events
from schemas.topics import ORDER_VALIDATIONS, ORDERS
from services.fraud.domain import History, from_row, judge, to_row
from services.verdicts import PASSED, Verdict, VerdictPublisher

APPLICATION = "fraud"
BY_CUSTOMER = Topic("fraud-orders-by-customer-repartition")
CHANGELOG = changelog_of(APPLICATION, "customers")
_TOO_MUCH = Verdict("SPENDING_LIMIT", "the customer's orders of this session reach 2000 or more")


class FraudWorker(Worker):
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

    async def restore(self, partitions: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        await self._store.restore(partitions[BY_CUSTOMER.name])
        return {}

    def forget(self) -> None:
        self._store.forget()

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        if record.topic == ORDERS.name:
            await self._see_order(record, outbox)
        else:
            order_id, total, ordered_at_ms = json.loads(record.value)
            order = _Order(record.key.decode(), order_id, total, ordered_at_ms)
            self._judge(record.partition, order, record.headers, outbox)

    async def _see_order(self, record: ConsumerRecord, outbox: Outbox) -> None:
        event = await self._events.decode(self._orders, record.value)
        if event["state"] != "CREATED":
            return
        order = _order_of(event)
        headers = child_headers(record.headers, APPLICATION)
        outbox.send(BY_CUSTOMER.name, order.customer_id, _handed_over(order), headers)

    def _judge(self, partition: int, order: "_Order", headers: Headers, outbox: Outbox) -> None:
        history = self._store.get(partition, order.customer_id) or History()
        changed, passed = judge(history, order.order_id, order.total, order.ordered_at_ms)
        if changed is not history:
            self._store.put(partition, order.customer_id, changed, outbox)
        verdict = PASSED if passed else _TOO_MUCH
        self._publisher.publish(order.order_id, verdict, headers, outbox)


class _Order(NamedTuple):
    """What matters of an order; the total in ten-thousandths."""

    customer_id: str
    order_id: str
    total: int
    ordered_at_ms: int


def _order_of(event: Event) -> _Order:
    total = int(event["total"].scaleb(4))
    ordered_at_ms = round(event["ordered_at"].timestamp() * 1000)
    return _Order(event["customer_id"], event["order_id"], total, ordered_at_ms)


def _handed_over(order: _Order) -> bytes:
    return json.dumps([order.order_id, order.total, order.ordered_at_ms]).encode()


async def assemble(settings: Settings, url: str, events: Events, running: Running[None]) -> None:
    """Build the worker and the processor that drives it."""
    writer = await events.writer(ORDER_VALIDATIONS.name, "orders/order_validation")
    publisher = VerdictPublisher("FRAUD", APPLICATION, writer, running.metrics)
    worker = FraudWorker(
        partial(read_to_end, settings.kafka, show=running.metrics.show_restoring),
        events,
        publisher,
    )
    running.processor = Processor(APPLICATION, settings, worker, running.metrics)
