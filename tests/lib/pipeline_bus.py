"""A pipeline without Kafka: topics in memory, workers that run step by step, crashes on demand.

Kafka's guarantees hold: order within a partition, committed records stay, a transaction is visible
completely or not at all, and a member of an old generation cannot commit. The test's random source
decides the rest: which instance continues next and how far, whether the transaction of a dead
instance was decided, and that uncommitted records come again.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from aiokafka.partitioner import murmur2
from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.topics import Topic
from common.processing.outbox import Outbox
from common.registry.events import Events
from common.registry.wire import EventReader


class FakeRegistry:
    """Ids for schemas, stored in memory."""

    def __init__(self) -> None:
        self.schemas: list[str] = []

    async def register(self, subject: str, schema: dict[str, Any]) -> int:
        text = json.dumps(schema)
        if text not in self.schemas:
            self.schemas.append(text)
        return self.schemas.index(text) + 1

    async def schema(self, schema_id: int) -> dict[str, Any]:
        return json.loads(self.schemas[schema_id - 1])


def fake_events(registry: FakeRegistry | None = None) -> Events:
    return Events(registry or FakeRegistry())


class Bus:
    """All topics. The first record creates a topic."""

    def __init__(self, partition_counts: dict[str, int] | None = None) -> None:
        self._counts = partition_counts or {}
        self.topics: dict[str, dict[int, list[ConsumerRecord]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self.clock_ms = 1_700_000_000_000

    def partition_count(self, topic: str) -> int:
        return self._counts.get(topic, 6)

    def partition_of(self, topic: str, key: bytes) -> int:
        return int((murmur2(key) & 0x7FFFFFFF) % self.partition_count(topic))

    def append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes]] = (),
        partition: int | None = None,
    ) -> None:
        if partition is None:
            partition = self.partition_of(topic, key or b"")
        records = self.topics[topic][partition]
        records.append(record(topic, partition, len(records), key, value, headers, self.clock_ms))

    def all(self, topic: str) -> list[ConsumerRecord]:
        partitions = self.topics[topic]
        return [one for number in sorted(partitions) for one in partitions[number]]

    async def read_to_end(
        self, partitions: Iterable[TopicPartition], replay: Any
    ) -> dict[TopicPartition, int]:
        ends = {}
        for partition in partitions:
            records = list(self.topics[partition.topic][partition.partition])
            for one in records:
                await replay(one)
            ends[partition] = len(records)
        return ends


def record(
    topic: str,
    partition: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes]] = (),
    timestamp_ms: int = 0,
) -> ConsumerRecord:
    return ConsumerRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=timestamp_ms,
        timestamp_type=0,
        key=key,
        value=value,
        checksum=None,
        serialized_key_size=len(key or b""),
        serialized_value_size=len(value or b""),
        headers=tuple(headers),
    )


class CrashError(Exception):
    """The instance died or was refused, and must restore its state."""


class Group:
    """The committed offsets of one application, and its generation."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, int] = {}
        self.generation = 0


class Instance:
    """One running worker with its partitions."""

    def __init__(self, bus: Bus, group: Group, worker: Any) -> None:
        self.bus = bus
        self.group = group
        self.worker = worker
        self.held: list[TopicPartition] = []
        self.generation = -1
        self._positions: dict[TopicPartition, int] = {}
        self._outbox = Outbox()
        worker.connect(self)

    async def take(self, numbers: Iterable[int]) -> None:
        """Take these partitions of every input, from their committed offsets."""
        numbers = list(numbers)
        self.generation = self.group.generation
        self._outbox = Outbox()
        self.worker.forget()
        topics: list[Topic] = list(self.worker.inputs)
        self.held = [TopicPartition(topic.name, number) for topic in topics for number in numbers]
        starts = await self.worker.restore({topic.name: set(numbers) for topic in topics})
        self._positions = {
            partition: starts.get(partition, self.group.committed.get(partition, 0))
            for partition in self.held
        }

    @property
    def is_idle(self) -> bool:
        return all(
            self._positions[partition] >= len(self._records(partition)) for partition in self.held
        )

    def _records(self, partition: TopicPartition) -> list[ConsumerRecord]:
        return self.bus.topics[partition.topic][partition.partition]

    async def step(self, source: random.Random, crash_share: float = 0.0) -> None:
        """Handle some records and commit. Raise CrashError if the random source decides so."""
        order = {topic.name: place for place, topic in enumerate(self.worker.inputs)}
        chosen = [partition for partition in self.held if source.random() < 0.6]
        for partition in sorted(chosen, key=lambda one: (order[one.topic], one.partition)):
            await self._handle_up_to(partition, source.randint(0, 5))
        await self.worker.tick(self.bus.clock_ms, self._outbox)
        # Rows and offsets of records without output may be committed at any time, or not.
        if self._outbox.outgoing or source.random() < 0.5:
            self._commit(source.random() < crash_share, source.random() < 0.5)
            self.worker.flushed()

    def _commit(self, dies: bool, is_decided: bool) -> None:
        """Commit the output and the offsets in one transaction.

        A worker that dies before the coordinator has decided leaves no records; a worker that dies
        later leaves all of them.
        """
        records = self._outbox.take()
        if self.generation != self.group.generation:
            raise CrashError
        if is_decided or not dies:
            for one in records:
                self.bus.append(one.topic, one.key, one.value, one.headers, one.partition)
            self.group.committed.update(self._positions)
        if dies:
            raise CrashError

    async def _handle_up_to(self, partition: TopicPartition, count: int) -> None:
        start = self._positions[partition]
        for one in self._records(partition)[start : start + count]:
            await self.worker.handle(one, self._outbox)
            self._positions[partition] = one.offset + 1

    async def catch_up(self, *topics: str) -> None:
        for partition in self.held:
            if partition.topic in topics:
                await self._handle_up_to(partition, len(self._records(partition)))


async def decode_all(
    events: Events, reader: EventReader, records: Iterable[ConsumerRecord]
) -> list[dict[str, Any]]:
    return [await events.decode(reader, one.value) for one in records]
