"""What becomes of the orders, read from the topics: `orders` and `order-validations`.

One consumer without a group reads both from the beginning. An order of this run is one whose id
was given by a POST of this run; the id may turn up in a topic before the POST is answered, so
what is read is kept by id for whoever asks later.
"""

import asyncio
import time
from dataclasses import dataclass, field
from decimal import Decimal

from aiokafka import AIOKafkaConsumer
from aiokafka.structs import ConsumerRecord

from millrace.demo.registry import RegistryReader
from millrace.demo.report import CHECKS, JUDGED

_TOPICS = ("orders", "order-validations")


@dataclass(slots=True)
class Observed:
    """What the topics say about one order."""

    state: str | None = None
    reasons: list[str] = field(default_factory=list)
    total: Decimal = Decimal(0)
    checks: dict[str, str] = field(default_factory=dict)
    judged_at: float = 0.0


class Observer:
    """Follows the topics; `wait_judged` and `wait_checked` tell about one order."""

    def __init__(self, bootstrap_servers: str, registry: RegistryReader) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._registry = registry
        self._orders: dict[str, Observed] = {}
        self._judged: dict[str, asyncio.Future[None]] = {}
        self._checked: dict[str, asyncio.Future[None]] = {}
        self.started = asyncio.Event()

    async def run(self) -> None:
        """Follow the topics until cancelled, whatever broker dies meanwhile."""
        consumer = AIOKafkaConsumer(
            *_TOPICS,
            bootstrap_servers=self._bootstrap_servers,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
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
            if topic == "orders":
                await self._see_order(record, observed, now)
            else:
                event = await self._registry.decode(record.value, "check", "result")
                observed.checks.setdefault(event["check"], event["result"])
                if len(observed.checks) == len(CHECKS):
                    _resolve(self._checked, record.key.decode())

    async def _see_order(self, record: ConsumerRecord, observed: Observed, now: float) -> None:
        event = await self._registry.decode(record.value, "state", "reasons", "total")
        if observed.state is None and event["state"] in JUDGED:
            observed.state = event["state"]
            observed.total = event["total"]
            observed.reasons = [
                f"{reason['check']} {reason['code']}" for reason in event["reasons"]
            ]
            observed.judged_at = now
            _resolve(self._judged, record.key.decode())

    def seen(self, order_id: str) -> Observed:
        """Return what is known of an order now."""
        return self._orders.setdefault(order_id, Observed())

    async def wait_judged(self, order_id: str) -> Observed:
        """Return what is known once the order has been VALIDATED or FAILED."""
        observed = self.seen(order_id)
        if observed.state is None:
            await self._judged.setdefault(order_id, asyncio.get_running_loop().create_future())
        return observed

    async def wait_checked(self, order_id: str) -> Observed:
        """Return what is known once every check has given its verdict."""
        observed = self.seen(order_id)
        if len(observed.checks) < len(CHECKS):
            await self._checked.setdefault(order_id, asyncio.get_running_loop().create_future())
        return observed


def _resolve(waiting: dict[str, asyncio.Future[None]], order_id: str) -> None:
    future = waiting.pop(order_id, None)
    if future is not None and not future.done():
        future.set_result(None)
