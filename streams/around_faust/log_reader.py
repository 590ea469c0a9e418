"""Reads partitions directly, beside Faust's consumer, to learn what the log holds.

A partition ends where the first open transaction begins. State, however, is read back to the end of
everything written, however long that takes: its rows may lie behind an open transaction of another
producer.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.structs import ConsumerRecord

from common.kafka.metadata_age import METADATA_MAX_AGE_MS
from common.kafka.stopping import stop
from millrace.security.access import KafkaAccess
from streams.around_faust.positions import TopicPartition

_FETCH_MAX_WAIT_MS = 50
_POLL_MS = 50
"""After so long it is looked again where a reader is: what is no record is passed in silence."""
_COMMITTED, _WRITTEN = "read_committed", "read_uncommitted"


class Range(NamedTuple):
    """Offsets from `start` on, to `end`, which is excluded."""

    start: int
    end: int


class LogReader:
    """Reads ranges of partitions, each time over a connection of its own; asks for their ends."""

    def __init__(self, kafka: KafkaAccess) -> None:
        self._kafka = kafka
        self._askers: dict[str, AIOKafkaConsumer] = {}
        self._starting = asyncio.Lock()

    async def close(self) -> None:
        askers, self._askers = self._askers, {}
        await stop(*askers.values())

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where these partitions end now."""
        return await self._ends(partitions, _COMMITTED)

    async def _ends(
        self, partitions: Iterable[TopicPartition], isolation_level: str
    ) -> dict[TopicPartition, int]:
        async with self._starting:
            if isolation_level not in self._askers:
                consumer = self._consumer(isolation_level)
                await consumer.start()
                self._askers[isolation_level] = consumer
        asker = self._askers[isolation_level]
        offsets = await asker.end_offsets([KafkaPartition(*one) for one in partitions])
        return {TopicPartition(one.topic, one.partition): at for one, at in offsets.items()}

    async def read(self, ranges: Mapping[TopicPartition, Range]) -> AsyncIterator[ConsumerRecord]:
        """Yield the records that exist in these ranges, each partition's in its order."""
        wanted = {KafkaPartition(*one): at for one, at in ranges.items() if at.start < at.end}
        if not wanted:
            return
        ends = {one: at.end for one, at in wanted.items()}
        consumer = self._consumer()
        await consumer.start()
        try:
            consumer.assign(list(wanted))
            for partition, at in wanted.items():
                consumer.seek(partition, at.start)
            while True:
                behind = [one for one, end in ends.items() if await consumer.position(one) < end]
                if not behind:
                    return
                batches = await consumer.getmany(*behind, timeout_ms=_POLL_MS)
                for partition, records in batches.items():
                    for record in records:
                        if record.offset < ends[partition]:
                            yield record
        finally:
            await stop(consumer)

    async def last_values(self, topic: str, partitions: list[int]) -> dict[int, dict[bytes, bytes]]:
        """Return the last value of every key, from the first record to where they end now."""
        rows: dict[int, dict[bytes, bytes]] = {partition: {} for partition in partitions}
        written = [TopicPartition(topic, number) for number in partitions]
        ends = await self._ends(written, _WRITTEN)
        async for record in self.read({one: Range(0, end) for one, end in ends.items()}):
            if record.value is None:
                rows[record.partition].pop(record.key, None)
            else:
                rows[record.partition][record.key] = record.value
        return rows

    def _consumer(self, isolation_level: str = _COMMITTED) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            **self._kafka.aiokafka(),
            # From an offset that is no longer there: on from the first one that is.
            auto_offset_reset="earliest",
            isolation_level=isolation_level,
            fetch_max_wait_ms=_FETCH_MAX_WAIT_MS,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
