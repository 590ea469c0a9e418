"""Topologies without Kafka, under a clock that the test moves.

Kafka Streams has a TopologyTestDriver; Faust's `test_context` runs one agent, with the wall
clock. Here all topologies run against lists (topics) and dicts (tables): what one sends the
next reads, in a fixed order, so a run is repeatable to the last byte. The clock gives the
timestamps of records that are sent and moves only by `advance`; event times are the events'
own.

Records are handled in micro-batches, up to `batch_records` of each partition in one. A driver may
be told to crash after some number of effects (a record sent, a row written). A batch is one
transaction, so after a crash none of it is there and the positions are unchanged, as after a kill.
Where the position is not committed with it (`loses_positions`: another reader of the topic is
slower) the records come again though all of it is there. `recover` goes on after a crash.
"""

from collections import defaultdict
from collections.abc import Coroutine
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
from streams.topology import Handle, Record


class CrashError(Exception):
    """The process was killed here."""


class LocalCodec:
    """Avro as on the wire, with schema ids of its own instead of a registry's."""

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
    """Rows by partition and key; the driver says which partition is current."""

    name: str
    partition: int = 0
    batch: MicroBatch = field(default_factory=MicroBatch)
    rows: dict[int, dict[str, Row]] = field(default_factory=lambda: defaultdict(dict))

    def row(self, key: str) -> Row | None:
        made = self.batch.row(self.partition, key)
        return self.rows[self.partition].get(key) if made is None else made

    def all_rows(self) -> dict[str, Row]:
        """Give the rows of all partitions by key.

        Raises AssertionError for a key that lies on several: one row would stand for all of them.
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


class TopologyDriver:
    """Runs every topology; `send` puts a record in, `run` handles all there is to handle."""

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

    # -- what a test does

    def advance(self, duration_ms: int) -> None:
        assert duration_ms >= 0, duration_ms
        self.now_ms += duration_ms

    def send(self, topic: str, key: str, value: bytes) -> None:
        self._append(topic, key, value, [])

    def run(self) -> None:
        """Handle records until none is left, each reader in turn."""
        while any(self._run_batch(agent) for agent in self._agents):
            pass

    def recover(self) -> None:
        """Go on after a crash: tables and topics are kept, the records in hand are dropped."""
        self.crash_after = None
        self.run()

    def records(self, topic: str) -> list[Record]:
        return [record for partition in self.topics[topic] for record in partition]

    # -- what a topology does

    def add_agent(self, reader: str, topic: str, table: LocalTable, handle: Handle) -> None:
        self._agents.append(_Agent(reader, topic, table, handle))

    async def apply(self, table: LocalTable, key: str, step: Step, record: Record) -> None:
        messages = [self._message(outgoing) for outgoing in step.outgoing]
        self._effects.append(Effect(key, step.row, messages))

    # -- within

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
        """Handle some records, if there are any; the positions move when all is done."""
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
    """Run a coroutine that waits for nothing to its end, without an event loop."""
    assert isinstance(work, Coroutine)
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("a topology waited for something")
