"""A whole topic as a table: every instance follows every partition.

For small compacted topics that every record may need, whatever its key: the catalogue. A row
may be younger than the record that needs it, so "not found" is an answer only after `catch_up`.
"""

import asyncio
import logging
from collections.abc import Callable

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord

from common.kafka.consumer import METADATA_MAX_AGE_MS, Consumer
from common.kafka.reading import UNREADABLE, EndOffsets, passed_over
from common.kafka.stopping import stop
from common.kafka.topic_creation import ensure_topics
from common.kafka.topics import Topic
from common.processing.settings import Settings

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5


class FollowedTable:
    """Feeds every record of a topic to `replay`, from the beginning, again after a failure."""

    def __init__(
        self, settings: Settings, topic: Topic, replay: Callable[[ConsumerRecord], None]
    ) -> None:
        self._kafka = settings.kafka
        self._replication_factor = settings.replication_factor
        self._topic = topic
        self._replay = replay
        self._end_offsets: EndOffsets | None = None
        self._partitions = [
            TopicPartition(topic.name, number) for number in range(topic.partition_count)
        ]
        self._moved = asyncio.Condition()
        self._next_offsets: dict[TopicPartition, int] = {}
        self._is_loaded = False

    @property
    def is_loaded(self) -> bool:
        return self._is_loaded

    async def run(self) -> None:
        """Follow the topic until cancelled."""
        while True:
            try:
                await self._follow()
            except (KafkaError, OSError) as error:
                log.warning("table lost its topic topic=%s error=%r", self._topic.name, error)
                await asyncio.sleep(_RETRY_SECONDS)
            finally:
                end_offsets, self._end_offsets = self._end_offsets, None
                await stop(end_offsets)

    async def catch_up(self) -> None:
        """Return when everything that is in the topic now is in the table.

        Raise KafkaError while the topic cannot be reached.
        """
        if self._end_offsets is None:
            raise KafkaError(f"no connection to topic {self._topic.name}")
        end_offsets = await self._end_offsets.of(self._partitions)
        if not self._has_reached(end_offsets):
            async with self._moved:
                await self._moved.wait_for(lambda: self._has_reached(end_offsets))

    def _has_reached(self, end_offsets: dict[TopicPartition, int]) -> bool:
        return all(self._next_offsets.get(p, 0) >= end for p, end in end_offsets.items())

    async def _follow(self) -> None:
        await ensure_topics(self._kafka, [self._topic], replication_factor=self._replication_factor)
        self._end_offsets = EndOffsets(self._kafka)
        await self._end_offsets.start()
        consumer = Consumer(
            **self._kafka.aiokafka(),
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
        await consumer.start()
        try:
            consumer.assign(self._partitions)
            await consumer.seek_to_beginning()
            end_offsets = await self._end_offsets.of(self._partitions)
            # Nothing to read is read already.
            await self._note_positions(consumer)
            while True:
                self._is_loaded = self._is_loaded or self._has_reached(end_offsets)
                await self._read(consumer)
        finally:
            await stop(consumer)

    async def _read(self, consumer: Consumer) -> None:
        for records in (await consumer.getmany(timeout_ms=500)).values():
            for record in records:
                self._replay_one(record)
        await self._note_positions(consumer)

    def _replay_one(self, record: ConsumerRecord) -> None:
        try:
            self._replay(record)
        except UNREADABLE as error:
            passed_over(record, error)

    async def _note_positions(self, consumer: Consumer) -> None:
        async with self._moved:
            for partition in self._partitions:
                self._next_offsets[partition] = await consumer.position(partition)
            self._moved.notify_all()
