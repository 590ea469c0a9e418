"""Payments: validated orders in, payments out, one charge per order.

An order's payment is an errand (`common/processing/external_effects.py`): noted when the order is
VALIDATED, done at the end of the same batch, and tried again later if the provider is away. The
provider knows an order by its id and charges it once, however often it is asked. So a crash between
the charge and the commit costs a second request, not a second charge.
"""

import asyncio
import logging
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.reading import ReadToEnd, read_to_end
from common.process import clock
from common.process.telemetry import Metrics, child_headers, trace_headers, traceparent_of
from common.processing.changelog import changelog_of
from common.processing.external_effects import AwayError, ErrandStore
from common.processing.outbox import Outbox
from common.processing.processor import Processor
from common.processing.service import Running
from common.processing.worker import Worker
from common.registry.events import Events
from common.registry.wire import EventWriter
from schemas.topics import ORDERS, PAYMENTS
from services.payments.domain import (
    Happening,
    Payment,
    Status,
    begin,
    from_row,
    happening_of,
    postpone,
    see,
    to_row,
)
from services.payments.provider import Charged, PaymentProvider, SimulatedProvider
from services.payments.settings import PaymentsSettings

log = logging.getLogger(__name__)

APPLICATION = "payments"
CHANGELOG = changelog_of(APPLICATION, "orders")
_CALLS_AT_ONCE = 64
"""So many calls to the provider run side by side."""


class PaymentsWorker(Worker):
    """Keeps the payments of the orders on its partitions."""

    inputs = (ORDERS,)
    outputs = (PAYMENTS, CHANGELOG)

    def __init__(
        self,
        provider: PaymentProvider,
        read_to_end: ReadToEnd,
        events: Events,
        writer: EventWriter,
        metrics: Metrics,
    ) -> None:
        self._provider = provider
        self._events = events
        self._orders = events.reader(
            "orders/order_event", "order_id", "version", "state", "customer_id", "total"
        )
        self._writer = writer
        self._metrics = metrics
        self._payments: ErrandStore[Payment] = ErrandStore(CHANGELOG, to_row, from_row, read_to_end)

    async def restore(self, partitions: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        await self._payments.restore(partitions[ORDERS.name])
        return {}

    def forget(self) -> None:
        self._payments.forget()

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        order = await self._events.decode(self._orders, record.value)
        happening = happening_of(order["state"], order["version"])
        if happening is None:
            return
        order_id = order["order_id"]
        before = self._payments.get(record.partition, order_id)
        after: Payment | None
        if before is None:
            like = Payment(
                Status.DUE,
                order["customer_id"],
                order["total"],
                traceparent=traceparent_of(record.headers),
            )
            after = begin(happening, like)
        else:
            after = see(before, happening)
        if after is not None and after is not before:
            self._payments.put(record.partition, order_id, after, outbox)

    async def tick(self, timestamp_ms: int, outbox: Outbox) -> None:
        """Ask the provider about every payment whose time has come."""
        while due := self._payments.take_due(timestamp_ms, _CALLS_AT_ONCE):
            asking = (self._ask(order_id, payment) for _, order_id, payment in due)
            answers = await asyncio.gather(*asking)
            for (partition, order_id, before), answer in zip(due, answers, strict=True):
                if answer is None:
                    after = postpone(before, timestamp_ms)
                else:
                    after = see(before, answer.happening)
                    self._publish(order_id, before, answer, outbox)
                self._payments.put(partition, order_id, after, outbox)

    async def _ask(self, order_id: str, payment: Payment) -> "_Answer | None":
        """Return what the provider says, None if it does not answer."""
        try:
            if payment.status is Status.REFUND_DUE:
                charge_id = await self._provider.refund(order_id)
                return _Answer(Happening.GIVEN_BACK, charge_id and "REFUNDED", charge_id)
            answer = await self._provider.charge(order_id, payment.customer_id, payment.amount)
        except AwayError as error:
            log.warning("provider does not answer order_id=%s error=%s", order_id, error)
            return None
        if isinstance(answer, Charged):
            return _Answer(Happening.CHARGED, "PAID", answer.charge_id)
        return _Answer(Happening.REFUSED, "DECLINED", None, answer.code, answer.reason)

    def _publish(self, order_id: str, payment: Payment, answer: "_Answer", outbox: Outbox) -> None:
        if answer.result is None:
            return
        event = {
            "order_id": order_id,
            "customer_id": payment.customer_id,
            "result": answer.result,
            "amount": payment.amount,
            "charge_id": answer.charge_id,
            "code": answer.code,
            "reason": answer.reason,
            "occurred_at": clock.utc_now(),
        }
        headers = child_headers(trace_headers(payment.traceparent), APPLICATION)
        outbox.send(PAYMENTS.name, order_id, self._writer.encode(event), headers)
        self._metrics.verdicts.labels(answer.result).inc()


class _Answer(NamedTuple):
    """What the provider said; no result is published where nothing had been charged."""

    happening: Happening
    result: str | None
    charge_id: str | None
    code: str | None = None
    reason: str | None = None


async def assemble(
    settings: PaymentsSettings, url: str, events: Events, running: Running[None]
) -> None:
    """Build the provider, the worker and the processor that drives it."""
    worker = PaymentsWorker(
        SimulatedProvider(settings.provider_books, Decimal(settings.provider_limit)),
        partial(read_to_end, settings.kafka, show=running.metrics.show_restoring),
        events,
        await events.writer(PAYMENTS.name, "payments/payment"),
        running.metrics,
    )
    running.processor = Processor(APPLICATION, settings, worker, running.metrics)
