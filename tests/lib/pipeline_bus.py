"""A pipeline without Kafka: topics in memory, workers stepped by hand, crashes on demand.

What Kafka promises is kept (order within a partition, acknowledged records stay), what it does
not promise is left to the test's random source: which instance goes on next, how far, what of an
unacknowledged batch got written when an instance dies, and that uncommitted records come again.
"""

import json
import random
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Iterator
from typing import Any

from aiokafka.partitioner import murmur2
from aiokafka.structs import ConsumerRecord, TopicPartition

from schemas.wire import EventReader
from services.common.events import Events
from services.common.kafka import Topic
from services.common.outbox import Outbox


class FakeRegistry:
    """Ids for schemas, in memory."""

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
    """All topics. A topic comes into being with its first record."""

    def __init__(self, partition_counts: dict[str, int] | None = None) -> None:
        self._counts = partition_counts or {}
        self.topics: dict[str, dict[int, list[ConsumerRecord]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self.clock_ms = 1_700_000_000_000

    def partition_count(self, topic: str) -> int:
        return self._counts.get(topic, 6)

    def append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes]] = (),
        partition: int | None = None,
    ) -> None:
        if partition is None:
            count = self.partition_count(topic)
            partition = (murmur2(key or b"") & 0x7FFFFFFF) % count
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
    """The instance died while it was writing."""


class _Acknowledgement:
    def __init__(self, sender: "_BusSender") -> None:
        self._sender = sender

    def __await__(self) -> Iterator[None]:
        self._sender.acknowledge()
        return iter(())


class _BusSender:
    """Writes what was sent when an acknowledgement is awaited.

    At a crash it writes, of each partition, some beginning of what was sent.
    """

    def __init__(self, bus: Bus, source: random.Random, crash_share: float) -> None:
        self._bus = bus
        self._source = source
        self._crash_share = crash_share
        self._sent: list[tuple[Any, ...]] = []

    async def send(
        self, topic: str, value: Any, key: Any, partition: Any, *, headers: Any
    ) -> Awaitable[None]:
        self._sent.append((topic, key, value, headers, partition))
        return _Acknowledgement(self)

    def acknowledge(self) -> None:
        sent, self._sent = self._sent, []
        if sent and self._source.random() < self._crash_share:
            self._write_some(sent)
            raise CrashError
        for entry in sent:
            self._bus.append(*entry)

    def _write_some(self, sent: list[tuple[Any, ...]]) -> None:
        by_place: dict[tuple[Any, Any], list[tuple[Any, ...]]] = defaultdict(list)
        for entry in sent:
            by_place[entry[0], entry[1] if entry[4] is None else entry[4]].append(entry)
        for entries in by_place.values():
            for entry in entries[: self._source.randint(0, len(entries))]:
                self._bus.append(*entry)


class Group:
    """The committed offsets of one application."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, int] = {}


class Instance:
    """One running worker with the partitions it holds."""

    def __init__(self, bus: Bus, group: Group, worker: Any) -> None:
        self.bus = bus
        self.group = group
        self.worker = worker
        self.held: list[TopicPartition] = []
        self._positions: dict[TopicPartition, int] = {}
        self._outbox = Outbox()
        worker.connect(self)

    async def take(self, numbers: Iterable[int]) -> None:
        """Hold these partitions of every input, from what is committed."""
        numbers = list(numbers)
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
        """Handle some records and flush; maybe commit. Raise CrashError at times."""
        order = {topic.name: place for place, topic in enumerate(self.worker.inputs)}
        chosen = [partition for partition in self.held if source.random() < 0.6]
        for partition in sorted(chosen, key=lambda one: (order[one.topic], one.partition)):
            await self._handle_up_to(partition, source.randint(0, 5))
        await self.worker.tick(self.bus.clock_ms, self._outbox)
        await self._outbox.flush(_BusSender(self.bus, source, crash_share))
        self.worker.flushed()
        if source.random() < 0.5:
            self.group.committed.update(self._positions)

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
