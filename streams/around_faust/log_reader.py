"""Read partitions directly, besides Faust's consumer, to learn the content of the log.

A partition is read up to its first open transaction. State, however, is read up to the end of the
log, however long that takes, because rows may come after an open transaction of another producer.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import NamedTuple

from aiokafka import TopicPartition as KafkaPartition
from aiokafka.structs import ConsumerRecord

from common.credentials.access import KafkaAccess
from common.kafka.consumer import METADATA_MAX_AGE_MS, Consumer
from common.kafka.stopping import stop
from streams.around_faust.positions import TopicPartition

_FETCH_MAX_WAIT_MS = 50
_POLL_MS = 50
"""The interval at which a reader's position is checked: it passes markers without a record."""
_COMMITTED, _WRITTEN = "read_committed", "read_uncommitted"


class Range(NamedTuple):
    """The offsets from `start` to `end`, which is exclusive."""

    start: int
    end: int


class LogReader:
    """Reads ranges of partitions, each time with a new connection, and their end offsets."""

    def __init__(self, kafka: KafkaAccess) -> None:
        self._kafka = kafka
        self._askers: dict[str, Consumer] = {}
        self._starting = asyncio.Lock()

    async def close(self) -> None:
        askers, self._askers = self._askers, {}
        await stop(*askers.values())

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the current end offsets of these partitions."""
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
        """Yield the records in these ranges, in the order of each partition."""
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
        """Return the last value of every key, from the first record to the current end."""
        rows: dict[int, dict[bytes, bytes]] = {partition: {} for partition in partitions}
        written = [TopicPartition(topic, number) for number in partitions]
        ends = await self._ends(written, _WRITTEN)
        async for record in self.read({one: Range(0, end) for one, end in ends.items()}):
            if record.value is None:
                rows[record.partition].pop(record.key, None)
            else:
                rows[record.partition][record.key] = record.value
        return rows

    def _consumer(self, isolation_level: str = _COMMITTED) -> Consumer:
        return Consumer(
            **self._kafka.aiokafka(),
            # If the offset was deleted, continue at the first one that exists.
            auto_offset_reset="earliest",
            isolation_level=isolation_level,
            fetch_max_wait_ms=_FETCH_MAX_WAIT_MS,
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
