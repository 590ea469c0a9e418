"""When each order came to which state, by a stock consumer of what is committed in `orders`."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable

import confluent_kafka

from millrace.demo.report import ENDS, JUDGED

ORDERS = "orders"
_AT_ONCE = 500
_POLL_SECONDS = 0.05
_LIST_SECONDS = 10

StateOf = Callable[[bytes], Awaitable[str]]
"""Reads the state out of an order's event; raises ValueError or EOFError where it is none."""


class Following:
    """Follows `orders` from its end; times are those of `time.monotonic`."""

    def __init__(self, bootstrap_servers: str, state_of: StateOf) -> None:
        self.judged_at: dict[str, float] = {}
        """When an order was first seen VALIDATED or FAILED."""
        self.judged_as: dict[str, str] = {}
        """Which of the two it was."""
        self.ended_at: dict[str, float] = {}
        """When an order was first seen at an end: PAID, FAILED or CANCELLED."""
        self.states: dict[str, str] = {}
        """The last state of each order."""
        self.started = asyncio.Event()
        self._state_of = state_of
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "millrace-load",  # It joins none: partitions are assigned by hand.
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 50,
            }
        )

    async def run(self) -> None:
        """Read what is new until cancelled; raises KafkaException."""
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
                messages = await asyncio.to_thread(self._consumer.consume, _AT_ONCE, _POLL_SECONDS)
                now = time.monotonic()
                for message in messages:
                    await self._see(message, now)
        finally:
            self._consumer.close()

    async def _end_of(self, number: int) -> int:
        """Return where to begin: asked for now, so that nothing sent from now on is missed."""
        partition = confluent_kafka.TopicPartition(ORDERS, number)
        ends = await asyncio.to_thread(
            self._consumer.get_watermark_offsets, partition, _LIST_SECONDS
        )
        return int(ends[1])

    async def _see(self, message: confluent_kafka.Message, now: float) -> None:
        key, value = message.key(), message.value()
        if message.error() or key is None or value is None:
            return  # A broker that is away: the client asks again by itself.
        try:
            state = await self._state_of(value)
        except (ValueError, EOFError):
            return  # No order's event: what the services set aside is none of ours.
        order_id = key.decode(errors="replace")
        self.states[order_id] = state
        if state in ENDS:
            self.ended_at.setdefault(order_id, now)
        if state in JUDGED and order_id not in self.judged_at:
            self.judged_at[order_id], self.judged_as[order_id] = now, state
            waiting = self._waiting.pop(order_id, None)
            if waiting is not None:
                waiting.set_result(None)

    async def wait_judged(self, order_id: str) -> None:
        """Return when this order is VALIDATED or FAILED; one waiter for each."""
        if order_id not in self.judged_at:
            self._waiting[order_id] = asyncio.get_running_loop().create_future()
            await self._waiting[order_id]

    async def wait_all_judged(self, order_ids: Iterable[str]) -> None:
        for order_id in order_ids:
            await self.wait_judged(order_id)
