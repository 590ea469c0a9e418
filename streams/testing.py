"""Topologies without Kafka, under a clock that the test moves.

Kafka Streams has a TopologyTestDriver; Faust's `test_context` runs only one agent, with the wall
clock. This driver runs all topologies with lists as topics and dicts as tables. Records are read in
a fixed order, so a run can be repeated byte by byte. The clock sets the timestamps of sent records
and moves only by `advance`; event times come from the events.

Records are handled in micro-batches of up to `batch_records` of each partition. The driver can
crash after a given number of effects (a sent record, a written row). A batch is one transaction, so
after a crash none of it exists and the positions are unchanged, as after a kill. With
`loses_positions` the batch is committed but not its position, as happens when another reader of the
topic is slower; its records then come again. `recover` continues after a crash.
"""

from collections import defaultdict
from collections.abc import Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from common.kafka.topics import PARTITION_COUNT
from common.registry import loader
from common.registry.wire import EventReader, EventWriter
from streams.micro_batch import Effect, Message, MicroBatch
from streams.records import NEWEST_VERSION, Event, Outgoing, Row, Step, origin_of
from streams.settings import Settings
from streams.topologies import TABLES, add_topologies
from streams.topology import Handle, Record, check_written


class CrashError(Exception):
    """The simulated process was killed."""


class LocalCodec:
    """Avro in the wire format, with schema ids that need no registry."""

    def __init__(self) -> None:
        self._writers: dict[tuple[str, int], EventWriter] = {}
        self._readers = {name: EventReader(_schema(name)) for name in loader.names()}

    def encode(self, name: str, event: Event, version: int | None = None) -> bytes:
        key = (name, version or NEWEST_VERSION.get(name, 1))
        if key not in self._writers:
            schema_id = len(self._writers) + 1
            self._writers[key] = EventWriter(loader.load(*key), schema_id)
            self._readers[name].learn(schema_id, loader.load(*key))
        return self._writers[key].encode(event)

    async def decode(self, name: str, value: bytes | None) -> Event:
        return self._readers[name].decode(value)


def _schema(name: str) -> dict[str, Any]:
    return loader.load(name, NEWEST_VERSION.get(name, 1))


@dataclass
class LocalTable:
    """Rows by partition and key; the driver sets the current partition."""

    name: str
    partition: int = 0
    batch: MicroBatch = field(default_factory=MicroBatch)
    rows: dict[int, dict[str, Row]] = field(default_factory=lambda: defaultdict(dict))

    def row(self, key: str) -> Row | None:
        made = self.batch.row(self.partition, key)
        return self.rows[self.partition].get(key) if made is None else made

    def all_rows(self) -> dict[str, Row]:
        """Return the rows of all partitions by key.

        Raise AssertionError if several partitions have the same key.
        """
        found: dict[str, Row] = {}
        for partition, rows in self.rows.items():
            for key, row in rows.items():
                assert key not in found, (
                    self.name,
                    key,
                    "lies on another partition too",
                    partition,
                )
                found[key] = row
        return found


@dataclass(frozen=True)
class _Agent:
    reader: str
    topic: str
    table: LocalTable
    handle: Handle
    writes: Collection[str]


class TopologyDriver:
    """Runs all topologies: `send` adds a record to a topic, `run` handles all records."""

    def __init__(
        self, settings: Settings | None = None, *, now_ms: int = 0, batch_records: int = 1
    ) -> None:
        self.codec = LocalCodec()
        self.now_ms = now_ms
        self.tables = {name: LocalTable(name) for name in TABLES}
        self.topics: dict[str, list[list[Record]]] = defaultdict(
            lambda: [[] for _ in range(PARTITION_COUNT)]
        )
        self.crash_after: int | None = None
        self.loses_positions = False
        self._batch_records = batch_records
        self._effects: list[Effect] = []
        self._positions: dict[tuple[str, int], int] = defaultdict(int)
        self._agents: list[_Agent] = []
        add_topologies(self, self.tables, settings or Settings())

    # -- for tests

    def advance(self, duration_ms: int) -> None:
        assert duration_ms >= 0, duration_ms
        self.now_ms += duration_ms

    def send(self, topic: str, key: str, value: bytes) -> None:
        self._append(topic, key, value, [])

    def run(self) -> None:
        """Handle records until none is left; the readers take turns."""
        while any(self._run_batch(agent) for agent in self._agents):
            pass

    def recover(self) -> None:
        """Continue after a crash: keep tables and topics, drop the records in progress."""
        self.crash_after = None
        self.run()

    def records(self, topic: str) -> list[Record]:
        return [record for partition in self.topics[topic] for record in partition]

    # -- for topologies

    def add_agent(
        self,
        reader: str,
        topic: str,
        table: LocalTable,
        handle: Handle,
        writes: Collection[str] = (),
    ) -> None:
        self._agents.append(_Agent(reader, topic, table, handle, writes))

    async def apply(self, table: LocalTable, key: str, step: Step, record: Record) -> None:
        check_written(table.name, step, self._written(table))
        messages = [self._message(outgoing) for outgoing in step.outgoing]
        self._effects.append(Effect(key, step.row, messages))

    # -- internal

    def _written(self, table: LocalTable) -> set[str]:
        return {topic for agent in self._agents if agent.table is table for topic in agent.writes}

    def _message(self, outgoing: Outgoing) -> Message:
        value = outgoing.value
        if outgoing.schema is not None:
            value = self.codec.encode(outgoing.schema, value)
        headers = [outgoing.origin.header()] if outgoing.origin else []
        return Message(outgoing.topic, outgoing.key.encode(), value, headers)

    def _append(self, topic: str, key: str, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        number = crc32(key.encode()) % PARTITION_COUNT
        log = self.topics[topic][number]
        origin = origin_of(headers, topic, number, len(log))
        log.append(Record(topic, number, len(log), key, value, self.now_ms, origin, headers))

    def _effect(self) -> None:
        if self.crash_after is not None:
            self.crash_after -= 1
            if self.crash_after < 0:
                raise CrashError

    def _run_batch(self, agent: _Agent) -> bool:
        """Handle a batch of records, if there are any; the positions move at its end."""
        table, batch = agent.table, MicroBatch()
        table.batch = batch
        taken = {number: self._next_of(agent, number) for number in _ALL}
        for table.partition, records in taken.items():
            for record in records:
                self._effects = []
                _finish(agent.handle(record))
                batch.add(record.partition, self._effects)
        for _ in (*batch.messages, *batch.rows):
            self._effect()
        for message in batch.messages:
            self._append(message.topic, message.key.decode(), message.value, message.headers)
        for (partition, key), row in batch.rows.items():
            table.rows[partition][key] = row
        if self.loses_positions:
            self._effect()
        for number, records in taken.items():
            self._positions[agent.reader, number] += len(records)
        return any(taken.values())

    def _next_of(self, agent: _Agent, number: int) -> list[Record]:
        position = self._positions[agent.reader, number]
        return self.topics[agent.topic][number][position : position + self._batch_records]


_ALL = range(PARTITION_COUNT)


def _finish(work: Any) -> None:
    """Run a coroutine that never waits to its end, without an event loop."""
    assert isinstance(work, Coroutine)
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("a topology waited for something")
