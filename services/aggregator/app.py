"""Aggregator: checks in, decisions out, one case per order.

It reads `order-validations` and `orders`, both keyed by order id: the same instance holds a
partition of both. `orders` tells when an order was created, and that its decision was
taken over: only then may a case be dropped.

Before an order fails because checks are missing, the service reads `order-validations` to its end:
its own stop or lag is not counted as a missing check.
"""

from collections.abc import Mapping
from functools import partial

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.reading import ReadToEnd, read_to_end
from common.process.telemetry import Metrics, child_headers, trace_headers, traceparent_of
from common.processing.outbox import Outbox
from common.processing.processor import Processor
from common.processing.service import Running
from common.processing.worker import Worker
from common.registry.events import Events
from common.registry.wire import EventWriter
from schemas.topics import ORDER_DECISIONS, ORDER_VALIDATIONS, ORDERS
from services.aggregator.domain import (
    Case,
    CheckResult,
    see_check,
    see_created,
    see_settled,
    see_time_out,
)
from services.aggregator.settings import AggregatorSettings
from services.aggregator.store import CHANGELOG, CaseStore

APPLICATION = "aggregator"


class AggregatorWorker(Worker):
    """Keeps the cases of the partitions it holds."""

    inputs = (ORDERS, ORDER_VALIDATIONS)
    outputs = (ORDER_DECISIONS, CHANGELOG)

    def __init__(
        self,
        timeout_ms: int,
        read_to_end: ReadToEnd,
        events: Events,
        writer: EventWriter,
        metrics: Metrics,
    ) -> None:
        self._timeout_ms = timeout_ms
        self._events = events
        self._orders = events.reader("orders/order_event", "order_id", "state", "created_at")
        self._validations = events.reader("orders/order_validation")
        self._writer = writer
        self._metrics = metrics
        self._store = CaseStore(read_to_end, timeout_ms)

    async def restore(self, partitions: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        await self._store.restore(partitions[ORDERS.name])
        return {}

    def forget(self) -> None:
        self._store.forget()

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        if record.topic == ORDERS.name:
            await self._handle_order(record, outbox)
        else:
            await self._handle_check(record, outbox)

    async def _handle_order(self, record: ConsumerRecord, outbox: Outbox) -> None:
        order = await self._events.decode(self._orders, record.value)
        before = self._store.get(record.partition, order["order_id"])
        if order["state"] == "CREATED":
            created_at_ms = round(order["created_at"].timestamp() * 1000)
            case = see_created(before, created_at_ms, traceparent_of(record.headers))
        else:
            case = see_settled(before)
        if case is not before:
            self._store.put(record.partition, order["order_id"], case, outbox)

    async def _handle_check(self, record: ConsumerRecord, outbox: Outbox) -> None:
        event = await self._events.decode(self._validations, record.value)
        order_id = event["order_id"]
        result = CheckResult(event["result"], event["code"], event["reason"])
        before = self._store.get(record.partition, order_id)
        case = see_check(before, event["check"], result)
        if case is before:
            return
        self._store.put(record.partition, order_id, case, outbox)
        if before.decision is None:
            self._publish(order_id, case, outbox)

    async def tick(self, timestamp_ms: int, outbox: Outbox) -> None:
        """Fail the orders whose time-out has passed."""
        if not self._store.is_any_due(timestamp_ms):
            return
        await self.catch_up(ORDER_VALIDATIONS.name, ORDERS.name)
        for partition, order_id in self._store.pop_due(timestamp_ms):
            case = see_time_out(self._store.get(partition, order_id), self._timeout_ms)
            self._store.put(partition, order_id, case, outbox)
            self._publish(order_id, case, outbox)

    def _publish(self, order_id: str, case: Case, outbox: Outbox) -> None:
        decision = case.decision
        if decision is None:
            return
        value = self._writer.encode(
            {
                "order_id": order_id,
                "decision": decision.decision,
                "reasons": list(decision.reasons),
            }
        )
        headers = child_headers(trace_headers(case.traceparent), APPLICATION)
        outbox.send(ORDER_DECISIONS.name, order_id, value, headers)
        self._metrics.verdicts.labels(decision.decision).inc()


async def assemble(
    settings: AggregatorSettings, url: str, events: Events, running: Running[None]
) -> None:
    """Build the worker with its timeout, and the processor that drives it."""
    writer = await events.writer(ORDER_DECISIONS.name, "orders/order_decision")
    worker = AggregatorWorker(
        settings.validation_timeout_ms,
        partial(read_to_end, settings.kafka, show=running.metrics.show_restoring),
        events,
        writer,
        running.metrics,
    )
    running.processor = Processor(APPLICATION, settings, worker, running.metrics)
