"""A consumer whose fetched records are taken at once and wait in memory.

aiokafka does not fetch a partition again before its last records were taken. After a tenth of a
second it asks that broker for the other partitions alone, and while that fetch waits, up to half a
second, it gets nothing of the partition that it left out. A service that commits a batch meanwhile
would wait for this at every step of an order. So the inbox takes records as they come, and every
fetch asks for all partitions.

A service with a batch interval would then fetch every few records. So its records are taken once in
each interval, and one fetch of each broker is ready by then.
"""

import asyncio
from collections import defaultdict, deque

from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.consumer import Consumer
from common.kafka.stopping import stop
from common.process.tasks import spawn

_RECORDS_MAX = 2_000
_POLL_MS = 500


class Inbox:
    """A consumer whose records wait in memory, `_RECORDS_MAX` of them and one fetch more at most.

    Positions are those of the records that were taken from here.
    """

    def __init__(self, consumer: Consumer, interval_ms: int = 0) -> None:
        self._consumer = consumer
        self._interval_seconds = interval_ms / 1000
        self._records: dict[TopicPartition, deque[ConsumerRecord]] = defaultdict(deque)
        self._arrived = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._draining: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Connect, and take what comes."""
        await self._consumer.start()
        self._draining = spawn(self._drain())

    async def stop(self) -> None:
        """Stop taking, leave the group, disconnect."""
        if self._draining is not None:
            self._draining.cancel()
            await asyncio.wait([self._draining])
        await stop(self._consumer)

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that are held."""
        held: set[TopicPartition] = self._consumer.assignment()
        return held

    def highwater(self, partition: TopicPartition) -> int | None:
        """Return where a partition ended at the last fetch; None before the first."""
        offset: int | None = self._consumer.highwater(partition)
        return offset

    def membership(self) -> tuple[int, str]:
        """Return the generation of the group and the member's id in it."""
        return self._consumer.membership()

    def forget(self) -> None:
        """Drop what waits here: it was fetched for an assignment that is over."""
        self._records.clear()
        self._has_room.set()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at an offset; what waits of the partition is dropped."""
        self._records.pop(partition, None)
        self._consumer.seek(partition, offset)

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record that is taken."""
        waiting = self._records.get(partition)
        return int(waiting[0].offset if waiting else await self._consumer.position(partition))

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Take records of these partitions, by default of all, as soon as there are any."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while not (found := self._take(partitions, max_records)) and loop.time() < deadline:
            if self._draining is not None and self._draining.done():
                self._draining.result()
            self._arrived.clear()
            # A wait for some partitions must end even if the records of others fill the inbox.
            self._has_room.set()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._arrived.wait()
            except TimeoutError:
                break
        return found

    def _take(
        self, partitions: tuple[TopicPartition, ...], max_records: int | None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        room = max_records if max_records is not None else _RECORDS_MAX
        for partition in partitions or tuple(self._records):
            waiting = self._records.get(partition)
            if waiting and room:
                count = min(len(waiting), room)
                found[partition] = [waiting.popleft() for _ in range(count)]
                room -= count
                # Next time the others come first.
                self._records[partition] = self._records.pop(partition)
        if self._count() < _RECORDS_MAX:
            self._has_room.set()
        return found

    def _count(self) -> int:
        return sum(map(len, self._records.values()))

    async def _drain(self) -> None:
        try:
            while True:
                await self._has_room.wait()
                batches = await self._consumer.getmany(timeout_ms=_POLL_MS)
                for partition, records in batches.items():
                    self._records[partition].extend(records)
                if batches:
                    self._arrived.set()
                    if self._count() >= _RECORDS_MAX:
                        self._has_room.clear()
                    await asyncio.sleep(self._interval_seconds)
        finally:
            # Waiting callers see the failure.
            self._arrived.set()
