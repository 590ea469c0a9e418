"""Observe when each order reaches which state, with a read_committed consumer of `orders`."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

import confluent_kafka

from common.credentials.access import KafkaAccess
from demo.pipeline.report import ENDS, JUDGED

ORDERS = "orders"
_AT_ONCE = 500
_POLL_SECONDS = 0.05
_LIST_SECONDS = 10
_REFUSALS = (
    confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED,
    confluent_kafka.KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's code
)

StateOf = Callable[[bytes], Awaitable[str]]
"""Decodes the state in an order's event; raises ValueError or EOFError for other records."""


class Arrivals(dict[str, float]):
    """The time at which each order was first seen in a state."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[str, asyncio.Future[None]] = {}

    def note(self, order_id: str, now: float) -> bool:
        """Record an order; return whether this is the first time."""
        if order_id in self:
            return False
        self[order_id] = now
        waiting = self._waiting.pop(order_id, None)
        if waiting is not None:
            waiting.set_result(None)
        return True

    async def wait(self, order_id: str) -> None:
        """Wait until the order has been seen; only one task may wait for an order."""
        if order_id not in self:
            self._waiting[order_id] = asyncio.get_running_loop().create_future()
            await self._waiting[order_id]

    async def wait_all(self, order_ids: Iterable[str]) -> None:
        """Wait until all of these orders have been seen."""
        for order_id in order_ids:
            await self.wait(order_id)


class Following:
    """Follows `orders` from its end; times are those of `time.monotonic`."""

    def __init__(self, kafka: KafkaAccess, state_of: StateOf) -> None:
        self.judged_at = Arrivals()
        """The orders that were seen VALIDATED or FAILED."""
        self.judged_as: dict[str, str] = {}
        """The verdict of each order: VALIDATED or FAILED."""
        self.ended_at = Arrivals()
        """The orders that were seen in a final state: PAID, FAILED or CANCELLED."""
        self.states: dict[str, str] = {}
        """The last state of each order."""
        self.started = asyncio.Event()
        self._state_of = state_of
        self._consumer = confluent_kafka.Consumer(
            {
                **kafka.librdkafka(),
                "group.id": "millstream-load",  # The consumer joins no group.
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )

    async def run(self) -> None:
        """Read new events until cancelled; raise KafkaException."""
        try:
            found = await asyncio.to_thread(self._consumer.list_topics, ORDERS, _LIST_SECONDS)
            self._consumer.assign(
                [
                    confluent_kafka.TopicPartition(ORDERS, number, await self._end_of(number))
                    for number in found.topics[ORDERS].partitions
                ]
            )
            self.started.set()
            while True:
                messages = await asyncio.to_thread(self._next)
                now = time.monotonic()
                for message in messages:
                    await self._see(message, now)
        finally:
            self._consumer.close()

    def _next(self) -> list[confluent_kafka.Message]:
        """Return the available messages as soon as there is one; `consume` would wait for more."""
        first = self._consumer.poll(_POLL_SECONDS)
        return [] if first is None else [first, *self._consumer.consume(_AT_ONCE, 0)]

    async def _end_of(self, number: int) -> int:
        """Return the end offset of a partition, at which the consumer begins."""
        partition = confluent_kafka.TopicPartition(ORDERS, number)
        ends = await asyncio.to_thread(
            self._consumer.get_watermark_offsets, partition, _LIST_SECONDS
        )
        return int(ends[1])

    async def _see(self, message: confluent_kafka.Message, now: float) -> None:
        key, value = message.key(), message.value()
        error = message.error()
        if error is not None and error.code() in _REFUSALS:
            raise confluent_kafka.KafkaException(error)
        if error is not None or key is None or value is None:
            return  # The broker cannot be reached; the client retries by itself.
        try:
            state = await self._state_of(value)
        except (ValueError, EOFError):
            return  # The record is not an order's event; it needs no handling here.
        order_id = key.decode(errors="replace")
        self.states[order_id] = state
        if state in ENDS:
            self.ended_at.note(order_id, now)
        if state in JUDGED and self.judged_at.note(order_id, now):
            self.judged_as[order_id] = state
