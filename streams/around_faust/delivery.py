"""Deliver each record once from Faust's streams to the topologies' functions.

Faust acknowledges every record, even if its agent failed or a rebalance dropped it. It has no
retries and no dead letters, and only logs a failed send. This module adds:

- **Gate.** No record is handled before all tables are restored (`tables`) and the
  positions of the assignment are known; Faust seeks to them, too late for some records.
- **Positions** (`positions`) distinguish new records from repeated ones, and reveal gaps. A gap is
  read from the log itself, and so is the end of a partition at which Faust has stopped. Only this
  module commits positions, and only of records whose effects are committed.
- **Micro-batches** (`micro_batch`): records that arrive during the commit of the last batch are
  handled together, so batches grow with the load. A single record does not wait for others.
- **One transaction** (`writer`) contains outgoing records, changelog rows and positions; afterwards
  the rows are written to the store. So each record is handled once, whatever crashes. The position
  of a topic with two readers is that of the slower one: the rows of the faster one recognize
  repeated records, and only a dead letter may be written twice.
- **Retries.** A record is retried while the registry cannot be reached. A malformed record becomes
  a dead letter at once, any other failure after a few attempts: topic `<topic>.dead-letter`, with
  the reason in the headers. So no record blocks a partition. If a transaction fails, the app ends,
  and a new app begins from the committed state.
- **Superseded.** Work that began under an earlier assignment ends before its transaction. If it
  does not notice that it is superseded, the group refuses its transaction.

Each reader of a topic has its own positions; only one reader at a time uses a table.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import faust
from aiokafka.errors import KafkaError

from common.kafka.transactions.rules import Member
from common.process import clock, traces
from common.process.telemetry import child_headers
from common.processing.dead_letters import Origin, dead_letter_headers, dead_letter_of, reason_of
from common.registry.client import RegistryAwayError
from common.registry.wire import MalformedEventError
from streams.around_faust.log_reader import LogReader, Range
from streams.around_faust.positions import (
    Positions,
    TopicPartition,
    Verdict,
    earliest_where_missing,
)
from streams.around_faust.tables import ChangelogTable, current_partition
from streams.around_faust.writer import Changes, SupersededError, Writer
from streams.codec import Codec
from streams.micro_batch import Effect, Message, MicroBatch
from streams.records import Outgoing, Step, origin_of
from streams.telemetry import Metrics, tell_spans
from streams.topology import Handle, MalformedRecordError, Record, check_written

log = logging.getLogger(__name__)

ATTEMPTS = 3
BATCH_RECORDS = 500
_PAUSE_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0)
_COMMIT_SECONDS = 0.5
_TURNS_PER_LOOK = 2
AWAY = (KafkaError, RegistryAwayError, ConnectionError, TimeoutError)


class _Agent(NamedTuple):
    reader: str
    table: ChangelogTable
    handle: Handle
    writes: Collection[str]


class _Delivered(NamedTuple):
    """A message from Faust, and the generation of the assignment at its arrival."""

    generation: int
    message: Any


@dataclass
class Delivery:
    """The delivery of one app; `generation` increases at the start of every rebalance."""

    app: faust.App
    codec: Codec
    metrics: Metrics
    log_reader: LogReader
    writer: Writer
    batch_interval_ms: int = 0
    generation: int = 0
    channels: dict[str, Any] = field(default_factory=dict)
    _readers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _agents: dict[str, _Agent] = field(default_factory=dict)
    _gate: asyncio.Event = field(default_factory=asyncio.Event)
    _restored: set[str] = field(default_factory=set)
    _locks: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _effects: dict[str, list[Effect]] = field(default_factory=dict)
    _written: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _member: Member | None = None
    _fencing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.positions = Positions(self._readers)

    @property
    def is_open(self) -> bool:
        return self._gate.is_set()

    def topics_of_agents(self) -> dict[str, list[str]]:
        """Return the topics that each agent reads and writes, by the agent's name."""
        read = {reader: topic for topic, readers in self._readers.items() for reader in readers}
        return {name: [read[name], *agent.writes] for name, agent in self._agents.items()}

    def add_agent(
        self,
        reader: str,
        topic: str,
        table: ChangelogTable,
        handle: Handle,
        writes: Collection[str] = (),
    ) -> None:
        """Declare a Faust agent with this name that reads a topic and writes this table."""
        if topic not in self.channels:
            # Without acknowledgements Faust neither commits for the topic nor waits.
            self.channels[topic] = self.app.topic(
                topic, key_serializer="raw", value_serializer="raw", acks=False
            )
        self._readers[topic] = (*self._readers.get(topic, ()), reader)
        self._agents[reader] = _Agent(reader, table, handle, writes)
        self._written[table.name].update(writes)

        async def agent(stream: Any) -> None:
            queue: asyncio.Queue[_Delivered] = asyncio.Queue(BATCH_RECORDS)
            async with asyncio.TaskGroup() as group:
                working = group.create_task(self._work(self._agents[reader], queue))
                async for event in stream.events():
                    await queue.put(_Delivered(self.generation, event.message))
                working.cancel()

        self.app.agent(self.channels[topic], name=reader, concurrency=1)(agent)

    # -- assignments

    def close(self) -> None:
        """Begin a rebalance: messages delivered before it are ignored."""
        self.generation += 1
        self._gate.clear()
        self._member = None
        self._restored.clear()
        self.positions.end()

    async def fence(self) -> int:
        """Become the only writer for the assigned partitions, before their rows are read.

        Return the generation of the assignment.
        """
        async with self._fencing:
            if self._member is not None:
                return self.generation
            generation = self.generation
            app: Any = self.app
            member = Member(app.conf.id, *app.membership)
            assert member.generation_id >= 0, member
            await self.writer.take(member, self._held())
            if generation == self.generation:
                self._member = member
            return generation

    def _held(self) -> list[TopicPartition]:
        assignment = self.app.consumer.assignment()
        return [TopicPartition(*one) for one in assignment if one[0] in self._readers]

    async def table_restored(self, name: str, generation: int) -> None:
        """Open the gate if this was the last table of the assignment."""
        if generation != self.generation:
            return
        self._restored.add(name)
        if self._restored != set(self.app.tables):
            return
        starts = await self._starts()
        ends = await self.log_reader.end_offsets(starts)
        if generation == self.generation:
            self.positions.begin(starts, ends)
            self._gate.set()
            self.metrics.partitions.set(len(starts))
            log.info("gate open generation=%d partitions=%d", generation, len(starts))

    async def _starts(self) -> dict[TopicPartition, int]:
        """Return the first positions, and commit them for partitions without a committed offset.

        Faust seeks to committed offsets. Without one it would continue from its last fetch, after
        records that it dropped in a rebalance.
        """
        consumer: Any = self.app.consumer
        held = self._held()
        found = await consumer.seek_to_committed()
        committed = {TopicPartition(*one): offset for one, offset in found.items()}
        earliest = await consumer.earliest_offsets(*[faust.types.TP(*one) for one in held])
        starts = earliest_where_missing(
            held, committed, {TopicPartition(*one): offset for one, offset in earliest.items()}
        )
        await self._commit({one: at for one, at in starts.items() if committed.get(one) != at})
        return starts

    async def commit(self) -> None:
        """Commit the positions that moved; called at intervals, and before partitions are revoked.

        This waits for a running transaction, whose newer positions must not be overwritten.
        """
        async with self.writer.between_transactions():
            generation, offsets = self.generation, self.positions.to_commit()
            if offsets and await self._commit(offsets) and generation == self.generation:
                self.positions.committed(offsets)

    async def _commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        if not offsets:
            return True
        # Faust's public commit covers only records that Faust acknowledged.
        consumer: Any = self.app.consumer
        faust_offsets = {faust.types.TP(*one): at for one, at in offsets.items()}
        return bool(await consumer._commit(faust_offsets))  # noqa: SLF001

    async def keep_up(self) -> None:
        """Commit at intervals, and read from the log where Faust has stopped delivering."""
        for turn in count(1):
            await asyncio.sleep(_COMMIT_SECONDS)
            try:
                await self.commit()
                if turn % _TURNS_PER_LOOK == 0:
                    await self._read_on()
            except AWAY as error:
                log.warning("positions not committed, will be again error=%r", error)
            except SupersededError:
                continue
            # The outermost edge of this task; without it an error would end all commits.
            except Exception:
                log.exception("positions not committed, will be again")

    async def _read_on(self) -> None:
        ends = await self.log_reader.end_offsets(self.positions.partitions)
        lags = dict.fromkeys(self._readers, 0)
        # Some partitions may have moved to other instances.
        for partition in ends.keys() & set(self.positions.partitions):
            lags[partition.topic] += max(0, ends[partition] - self.positions.handled(partition))
        for topic, lag in lags.items():
            self.metrics.lag.labels(topic).set(lag)
        stalled = self.positions.stalled(ends)
        for reader, partition in await self._pass_over(stalled, ends):
            agent = self._agents[reader]
            lock = self._locks[agent.table.name]
            # A task that holds the lock is handling records, or waits for Kafka.
            if not lock.locked():
                async with lock:
                    await self._fill(agent, partition, ends[partition], self.generation)

    async def _pass_over(
        self, stalled: list[tuple[str, TopicPartition]], ends: Mapping[TopicPartition, int]
    ) -> list[tuple[str, TopicPartition]]:
        """Move past ends without records, such as transaction markers; return the others."""
        starts: dict[TopicPartition, int] = {}
        for reader, partition in stalled:
            wanted = self.positions.wanted_by(reader, partition)
            if wanted is not None:
                starts[partition] = min(wanted, starts.get(partition, wanted))
        ranges = {one: Range(start, ends[one]) for one, start in starts.items()}
        generation = self.generation
        holding = {
            TopicPartition(one.topic, one.partition) async for one in self.log_reader.read(ranges)
        }
        if generation != self.generation:
            return []
        for reader, partition in stalled:
            lock = self._locks[self._agents[reader].table.name]
            # A task that holds the lock has records that are not handled yet.
            if partition not in holding and not lock.locked():
                self.positions.reached(reader, partition, ends[partition])
        return [one for one in stalled if one[1] in holding]

    # -- records

    async def _work(self, agent: _Agent, queue: asyncio.Queue[_Delivered]) -> None:
        """Handle the queue until cancelled, each time all records in it as one batch."""
        while True:
            batch = [await queue.get()]
            begun_at = clock.now_seconds()
            while not queue.empty():
                batch.append(queue.get_nowait())
            try:
                await self._deliver(agent, batch)
            except SupersededError:
                log.info("batch given up, its assignment is over reader=%s", agent.reader)
            # The outermost edge of an agent; a new app replaces the crashed one and continues.
            except Exception as error:
                log.exception("batch failed reader=%s", agent.reader)
                await self.app.crash(error)
                return
            next_at = begun_at + self.batch_interval_ms / 1000
            await asyncio.sleep(max(0.0, next_at - clock.now_seconds()))

    async def _deliver(self, agent: _Agent, batch: list[_Delivered]) -> None:
        await self._gate.wait()
        async with self._locks[agent.table.name]:
            generation = self.generation
            messages = [one.message for one in batch if one.generation == generation]
            try:
                await self._handle_new(agent, messages, generation)
            finally:
                self.positions.give_back(agent.reader)

    async def _handle_new(self, agent: _Agent, messages: list[Any], generation: int) -> None:
        """Handle new records, and before them those that Faust has lost."""
        in_hand: list[Record] = []
        for message in messages:
            where = TopicPartition(message.topic, message.partition)
            verdict = self.positions.judge(agent.reader, where, message.offset)
            self.metrics.records.labels(where.topic, verdict.value).inc()
            if verdict is Verdict.GAP:
                await self._handle(agent, in_hand, generation)
                in_hand = []
                # Every transaction leaves a gap, so gaps are read together, not one by one.
                await self._fill(agent, where, self.positions.first_end(where), generation)
                verdict = self.positions.judge(agent.reader, where, message.offset)
            if verdict is not Verdict.SKIP:
                self.positions.take(agent.reader, where, message.offset)
                in_hand.append(record_of(message, message.timestamp * 1000, generation))
        await self._handle(agent, in_hand, generation)

    async def _fill(
        self, agent: _Agent, partition: TopicPartition, end_offset: int, generation: int
    ) -> None:
        """Handle the records in the log from the reader's position up to an offset."""
        attempt = 0
        while (start := self.positions.wanted_by(agent.reader, partition)) is not None:
            self._check(generation)
            try:
                filled = await self._handle_range(agent, partition, start, end_offset, generation)
            except AWAY as error:
                log.warning("gap not read, will retry at=%s error=%r", partition, error)
            else:
                log.warning("gap filled at=%s from=%d records=%d", partition, start, filled)
                self.metrics.filled.labels(partition.topic).inc(filled)
                self.positions.reached(agent.reader, partition, end_offset)
                return
            await _pause(attempt)
            attempt += 1

    async def _handle_range(
        self, agent: _Agent, partition: TopicPartition, start: int, end: int, generation: int
    ) -> int:
        """Handle the records between two offsets; return their number."""
        count_handled = 0
        in_hand: list[Record] = []
        async for one in self.log_reader.read({partition: Range(start, end)}):
            in_hand.append(record_of(one, one.timestamp, generation))
            count_handled += 1
            if len(in_hand) == BATCH_RECORDS:
                await self._handle(agent, in_hand, generation)
                in_hand = []
        await self._handle(agent, in_hand, generation)
        return count_handled

    async def _handle(self, agent: _Agent, records: list[Record], generation: int) -> None:
        """Handle records until each is done or a dead letter, then move past them."""
        begun_ns = clock.timestamp_ns()
        batch = agent.table.batch = MicroBatch()
        for record in records:
            batch.add(record.partition, await self._effects_of(agent, record))
        ends = {TopicPartition(one.topic, one.partition): one.offset + 1 for one in records}
        await self._take_effect(agent, batch, ends, generation)
        if traces.recorder is not None:
            tell_spans(traces.recorder, self.app.conf.id, records, batch.messages, begun_ns)
        for record in records:
            where = TopicPartition(record.topic, record.partition)
            self.positions.done(agent.reader, where, record.offset)

    async def _effects_of(self, agent: _Agent, record: Record) -> list[Effect]:
        """Return the effects of a record, or a dead letter if it cannot be handled."""
        current_partition.set(record.partition)
        attempt = 0
        while True:
            self._check(record.generation)
            effects = self._effects[agent.table.name] = []
            try:
                await agent.handle(record)
                return effects
            except SupersededError:
                raise
            except AWAY as error:
                log.warning("registry is away, will retry record=%s error=%r", record.origin, error)
            except (MalformedEventError, MalformedRecordError) as error:
                return [self._dead_letter(record, error)]
            # The outermost edge of a record; a bug must not block the partition.
            except Exception as error:
                log.exception("record failed record=%s attempt=%d", record.origin, attempt)
                if attempt + 1 >= ATTEMPTS:
                    return [self._dead_letter(record, error)]
            await _pause(attempt)
            attempt += 1

    def _dead_letter(self, record: Record, error: Exception) -> Effect:
        """Return the unchanged record as a dead letter, with the reason."""
        reason = reason_of(error)
        origin = Origin(record.topic, record.partition, record.offset)
        headers = [*record.headers, *dead_letter_headers(origin, self.app.conf.id, reason)]
        log.error("record set aside record=%s reason=%s", record.origin, reason)
        self.metrics.dead_letters.labels(record.topic).inc()
        topic = dead_letter_of(record.topic)
        return Effect("", None, [Message(topic, record.key.encode(), record.value, headers)])

    # -- effects

    async def apply(self, table: ChangelogTable, key: str, step: Step, record: Record) -> None:
        """Collect the records to send of a step, and its row."""
        self._check(record.generation)
        check_written(table.name, step, self._written[table.name])
        messages = [await self._message(one, record) for one in step.outgoing]
        self._effects[table.name].append(Effect(key, step.row, messages))

    async def _message(self, outgoing: Outgoing, record: Record) -> Message:
        value = outgoing.value
        if outgoing.schema is not None:
            value = await self.codec.encode(outgoing.topic, outgoing.schema, value)
        headers = [outgoing.origin.header()] if outgoing.origin else []
        headers += child_headers(record.headers, self.app.conf.id)
        return Message(outgoing.topic, outgoing.key.encode(), value, headers)

    async def _take_effect(
        self,
        agent: _Agent,
        batch: MicroBatch,
        ends: Mapping[TopicPartition, int],
        generation: int,
    ) -> None:
        """Commit all effects, then write the rows; `ends` are the offsets after the batch."""
        if not (batch.messages or batch.rows):
            return
        self._check(generation)
        assert self._member is not None
        offsets = self.positions.claim(agent.reader, ends)
        messages = [*batch.messages, *agent.table.changes(batch.rows)]
        await self.writer.write(Changes(messages, offsets, self._member))
        # The new owner of the partitions reads the committed rows from the changelog.
        self._check(generation)
        agent.table.keep(batch.rows)

    def _check(self, generation: int) -> None:
        if generation != self.generation:
            raise SupersededError


def record_of(message: Any, timestamp_ms: float, generation: int) -> Record:
    """Return the record of a message from Faust or aiokafka, whose fields have the same names."""
    headers = list(dict(message.headers or {}).items())
    return Record(
        message.topic,
        message.partition,
        message.offset,
        (message.key or b"").decode(errors="replace"),
        message.value,
        round(timestamp_ms),
        origin_of(headers, message.topic, message.partition, message.offset),
        headers,
        generation,
    )


async def _pause(attempt: int) -> None:
    await asyncio.sleep(_PAUSE_SECONDS[min(attempt, len(_PAUSE_SECONDS) - 1)])
