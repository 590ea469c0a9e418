"""Observe the orders in the topics: events, verdicts, payments and mails.

One consumer without a group reads all topics from the beginning. A POST of this run assigns the id
of an order. The id may appear in a topic before the answer to the POST, so all observations are
stored by id.
"""

import asyncio
import time
from dataclasses import dataclass, field
from decimal import Decimal

from aiokafka.structs import ConsumerRecord

from common.credentials.access import KafkaAccess
from common.kafka.consumer import METADATA_MAX_AGE_MS, Consumer
from demo.pipeline.registry import RegistryReader
from demo.pipeline.report import CHECKS, ENDS, JUDGED

_TOPICS = ("orders", "order-validations", "payments", "order-confirmations")


@dataclass(slots=True)
class Observed:
    """The observations of one order: its verdict, its final state, and its checks."""

    state: str | None = None
    end: str | None = None
    reasons: list[str] = field(default_factory=list)
    total: Decimal = Decimal(0)
    checks: dict[str, str] = field(default_factory=dict)
    payments: list[str] = field(default_factory=list)
    mails: int = 0
    judged_at: float = 0.0
    ended_at: float = 0.0

    @property
    def is_judged(self) -> bool:
        """Whether the order has its verdict and the results of all checks; one FAIL decides it."""
        return self.state is not None and len(self.checks) == len(CHECKS)

    @property
    def is_finished(self) -> bool:
        """Whether all checks have a result, the state is final, and the customer has a mail."""
        return len(self.checks) == len(CHECKS) and self.end is not None and self.mails > 0


class Observer:
    """Follows the topics; `wait_judged` and `wait_finished` wait for one order."""

    def __init__(self, kafka: KafkaAccess, registry: RegistryReader) -> None:
        self._kafka = kafka
        self._registry = registry
        self._orders: dict[str, Observed] = {}
        self._judged: dict[str, asyncio.Future[None]] = {}
        self._finished: dict[str, asyncio.Future[None]] = {}
        self.started = asyncio.Event()

    async def run(self) -> None:
        """Follow the topics until cancelled, even if brokers die."""
        consumer = Consumer(
            *_TOPICS,
            **self._kafka.aiokafka(),
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
        await consumer.start()
        try:
            self.started.set()
            while True:
                batches = await consumer.getmany(timeout_ms=500)
                for partition, records in batches.items():
                    await self._read(partition.topic, records)
        finally:
            await consumer.stop()

    async def _read(self, topic: str, records: list[ConsumerRecord]) -> None:
        now = time.monotonic()
        for record in records:
            observed = self.seen(record.key.decode())
            match topic:
                case "orders":
                    await self._see_order(record, observed, now)
                case "order-validations":
                    event = await self._registry.decode(record.value, "check", "result")
                    observed.checks.setdefault(event["check"], event["result"])
                case "payments":
                    event = await self._registry.decode(record.value, "result")
                    observed.payments.append(event["result"])
                case _:
                    observed.mails += 1
            if observed.is_judged:
                _resolve(self._judged, record.key.decode())
            if observed.is_finished:
                _resolve(self._finished, record.key.decode())

    async def _see_order(self, record: ConsumerRecord, observed: Observed, now: float) -> None:
        event = await self._registry.decode(record.value, "state", "reasons", "total")
        if observed.end is None and event["state"] in ENDS:
            observed.end, observed.ended_at = event["state"], now
        if observed.state is None and event["state"] in JUDGED:
            observed.state = event["state"]
            observed.total = event["total"]
            observed.reasons = [
                f"{reason['check']} {reason['code']}" for reason in event["reasons"]
            ]
            observed.judged_at = now

    def seen(self, order_id: str) -> Observed:
        """Return the observations of an order so far."""
        return self._orders.setdefault(order_id, Observed())

    async def wait_judged(self, order_id: str) -> None:
        """Wait until the order is VALIDATED or FAILED, and all checks have a result.

        Otherwise a check could see the customer's next order before this one.
        """
        if not self.seen(order_id).is_judged:
            await self._judged.setdefault(order_id, asyncio.get_running_loop().create_future())

    async def wait_finished(self, order_id: str) -> None:
        """Wait until no more events of the order are expected."""
        if not self.seen(order_id).is_finished:
            await self._finished.setdefault(order_id, asyncio.get_running_loop().create_future())


def _resolve(waiting: dict[str, asyncio.Future[None]], order_id: str) -> None:
    future = waiting.pop(order_id, None)
    if future is not None and not future.done():
        future.set_result(None)
