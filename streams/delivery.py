"""Every record once: what stands between Faust's streams and the pure functions.

Faust acknowledges a record whatever became of it, also when its agent failed and when it was
dropped in a rebalance; it has no retry and no dead letters; a send that fails is only logged.
Here:

- **Gate.** No record is handled before all tables are restored (`streams.tables`) and the
  positions of the assignment are known; Faust seeks to them, too late for some records.
- **Positions** (`streams.positions`) tell new records from repeated ones and show gaps. A gap
  is read from the log itself, so is the end of a partition where nothing moves. Positions are
  committed by this file, never by Faust; only for what was sent, stored and acknowledged.
- **Order of effects:** outgoing records, acknowledged; then the row in the changelog,
  acknowledged; then the row in the store; then the position. A crash between any two repeats
  the record. Its outgoing records may be there twice (same origin, same event id: readers drop
  the second); its row knows it.
- **Retry.** Kafka or the registry away: again and again, as there is nothing better to do. A
  malformed record: to the dead letters at once. Any other failure: a few times, then to the
  dead letters, topic `<topic>.dead-letter`, with the reason in the headers. So nothing stops a
  partition.
- **Superseded.** Work that began under an earlier assignment ends before its next effect.

Readers of one topic are judged each by itself; a partition of a table is touched by one at a
time.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import faust
from aiokafka.errors import KafkaError
from faust.exceptions import ProducerSendError

from schemas.wire import MalformedEventError
from streams.codec import Codec, RegistryAwayError
from streams.log_reader import LogReader, Range
from streams.positions import Positions, TopicPartition, Verdict, earliest_where_missing
from streams.records import Outgoing, Step, origin_of
from streams.tables import ChangelogTable, current_partition
from streams.telemetry import Metrics
from streams.topology import Handle, MalformedRecordError, Record

log = logging.getLogger(__name__)

ATTEMPTS = 3
_PAUSE_SECONDS = (0.05, 0.1, 0.2, 0.5, 1.0)
_COMMIT_SECONDS = 0.5
_TURNS_PER_LOOK = 3
_REASON_LIMIT_CHARACTERS = 500
AWAY = (KafkaError, ProducerSendError, RegistryAwayError, ConnectionError, TimeoutError)


class SupersededError(Exception):
    """The assignment under which this work began is over."""


class _Agent(NamedTuple):
    table_name: str
    handle: Handle


@dataclass
class Delivery:
    """The delivery of one app; `generation` rises with every rebalance that begins."""

    app: faust.App
    codec: Codec
    metrics: Metrics
    log_reader: LogReader
    generation: int = 0
    channels: dict[str, Any] = field(default_factory=dict)
    _readers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _agents: dict[str, _Agent] = field(default_factory=dict)
    _gate: asyncio.Event = field(default_factory=asyncio.Event)
    _restored: set[str] = field(default_factory=set)
    _locks: dict[tuple[str, int], asyncio.Lock] = field(
        default_factory=lambda: defaultdict(asyncio.Lock)
    )

    def __post_init__(self) -> None:
        self.positions = Positions(self._readers)

    @property
    def is_open(self) -> bool:
        return self._gate.is_set()

    def add_agent(self, reader: str, topic: str, table: ChangelogTable, handle: Handle) -> None:
        """Declare a Faust agent that reads a topic under this name and writes this table."""
        if topic not in self.channels:
            # Without acknowledgements Faust commits nothing for the topic, and waits for nothing.
            self.channels[topic] = self.app.topic(
                topic, key_serializer="raw", value_serializer="raw", acks=False
            )
        self._readers[topic] = (*self._readers.get(topic, ()), reader)
        self._agents[reader] = _Agent(table.name, handle)

        async def agent(stream: Any) -> None:
            async for event in stream.events():
                await self.deliver(reader, event)

        self.app.agent(self.channels[topic], name=reader, concurrency=1)(agent)

    # -- assignments

    def close(self) -> None:
        """A rebalance begins: nothing that was delivered before it counts any more."""
        self.generation += 1
        self._gate.clear()
        self._restored.clear()
        self.positions.end()

    async def table_restored(self, name: str) -> None:
        """Open the gate when this was the last table of the assignment."""
        generation = self.generation
        self._restored.add(name)
        if self._restored != set(self.app.tables):
            return
        starts = await self._starts()
        if generation == self.generation:
            self.positions.begin(starts)
            self._gate.set()
            self.metrics.partitions.set(len(starts))
            log.info("gate open generation=%d partitions=%d", generation, len(starts))

    async def _starts(self) -> dict[TopicPartition, int]:
        """Return where to begin, and commit it where nothing was committed yet.

        Faust seeks to what is committed. Where nothing is, it would go on from wherever the last
        fetch stood, past records that a rebalance made it drop.
        """
        consumer: Any = self.app.consumer
        held = [TopicPartition(*one) for one in consumer.assignment() if one[0] in self._readers]
        found = await consumer.seek_to_committed()
        committed = {TopicPartition(*one): offset for one, offset in found.items()}
        earliest = await consumer.earliest_offsets(*[faust.types.TP(*one) for one in held])
        starts = earliest_where_missing(
            held, committed, {TopicPartition(*one): offset for one, offset in earliest.items()}
        )
        await self._commit({one: at for one, at in starts.items() if committed.get(one) != at})
        return starts

    async def commit(self) -> None:
        """Commit the positions that moved; called now and then, and before partitions go."""
        generation, offsets = self.generation, self.positions.to_commit()
        if offsets and await self._commit(offsets) and generation == self.generation:
            self.positions.committed(offsets)

    async def _commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        if not offsets:
            return True
        # Faust's public commit knows only what Faust acknowledged.
        consumer: Any = self.app.consumer
        faust_offsets = {faust.types.TP(*one): at for one, at in offsets.items()}
        return bool(await consumer._commit(faust_offsets))  # noqa: SLF001

    async def keep_up(self) -> None:
        """Commit now and then, and read on from the log where Faust has stopped delivering."""
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
            # The outermost edge of this task: without it nothing would be committed any more.
            except Exception:
                log.exception("positions not committed, will be again")

    async def _read_on(self) -> None:
        ends = await self.log_reader.end_offsets(self.positions.partitions)
        lags = dict.fromkeys(self._readers, 0)
        # Some may have gone to others meanwhile.
        for partition in ends.keys() & set(self.positions.partitions):
            lags[partition.topic] += max(0, ends[partition] - self.positions.wanted(partition))
        for topic, lag in lags.items():
            self.metrics.lag.labels(topic).set(lag)
        for reader, partition in self.positions.stalled(ends):
            agent = self._agents[reader]
            lock = self._locks[agent.table_name, partition.partition]
            # Whoever holds it is at work, or waits for Kafka.
            if not lock.locked():
                async with lock:
                    await self._fill(reader, partition, ends[partition], self.generation)

    # -- records

    async def deliver(self, reader: str, event: Any) -> None:
        """Handle a record unless it was handled, and before it those that Faust has lost."""
        generation = self.generation
        await self._gate.wait()
        message = event.message
        where = TopicPartition(message.topic, message.partition)
        async with self._locks[self._agents[reader].table_name, where.partition]:
            if generation != self.generation:
                return
            verdict = self.positions.judge(reader, where, message.offset)
            self.metrics.records.labels(where.topic, verdict.value).inc()
            if verdict is Verdict.SKIP:
                return
            try:
                if verdict is Verdict.GAP:
                    await self._fill(reader, where, message.offset, generation)
                await self._handle(reader, record_of(message, message.timestamp * 1000, generation))
            except SupersededError:
                return

    async def _fill(
        self, reader: str, partition: TopicPartition, end_offset: int, generation: int
    ) -> None:
        """Handle what the log holds from the reader's position up to an offset."""
        attempt = 0
        while (start := self.positions.wanted_by(reader, partition)) is not None:
            if generation != self.generation:
                raise SupersededError
            try:
                filled = 0
                async for one in self.log_reader.read({partition: Range(start, end_offset)}):
                    await self._handle(reader, record_of(one, one.timestamp, generation))
                    filled += 1
            except AWAY as error:
                log.warning("gap not read, trying again at=%s error=%r", partition, error)
            else:
                log.warning("gap filled at=%s from=%d records=%d", partition, start, filled)
                self.metrics.filled.labels(partition.topic).inc(filled)
                self.positions.reached(reader, partition, end_offset)
                return
            await _pause(attempt)
            attempt += 1

    async def _handle(self, reader: str, record: Record) -> None:
        """Handle a record until it is done or set aside, then move past it."""
        current_partition.set(record.partition)
        await self._handle_or_set_aside(self._agents[reader].handle, record)
        where = TopicPartition(record.topic, record.partition)
        self.positions.done(reader, where, record.offset)

    async def _handle_or_set_aside(self, handle: Handle, record: Record) -> None:
        attempt = 0
        while True:
            self._check(record)
            try:
                await handle(record)
                return
            except SupersededError:
                raise
            except AWAY as error:
                log.warning("not there, trying again record=%s error=%r", record.origin, error)
            except (MalformedEventError, MalformedRecordError) as error:
                await self._set_aside(record, error)
                return
            # The outermost edge of a record: a bug must not stop the partition.
            except Exception as error:
                log.exception("record failed record=%s attempt=%d", record.origin, attempt)
                if attempt + 1 >= ATTEMPTS:
                    await self._set_aside(record, error)
                    return
            await _pause(attempt)
            attempt += 1

    async def _set_aside(self, record: Record, error: Exception) -> None:
        """Send a record to the dead letters, as it came, with the reason."""
        reason = f"{type(error).__name__}: {error}"[:_REASON_LIMIT_CHARACTERS]
        headers = [
            *record.headers,
            ("millrace-error", reason.encode()),
            ("millrace-offset", f"{record.topic}-{record.partition}:{record.offset}".encode()),
        ]
        log.error("record set aside record=%s reason=%s", record.origin, reason)
        self.metrics.dead_letters.labels(record.topic).inc()
        attempt = 0
        while True:
            self._check(record)
            try:
                await self.app.producer.send_and_wait(
                    f"{record.topic}.dead-letter",
                    record.key.encode(),
                    record.value,
                    None,
                    None,
                    headers,
                )
                return
            except AWAY as failure:
                log.warning("dead letter not sent, trying again error=%r", failure)
            await _pause(attempt)
            attempt += 1

    # -- effects

    async def apply(self, table: ChangelogTable, key: str, step: Step, record: Record) -> None:
        """Send what a step wants sent, then store its row; each acknowledged before the next."""
        self._check(record)
        await asyncio.gather(*[self._send(one) for one in step.outgoing])
        self._check(record)
        if step.row is not None:
            await table.put(key, step.row, record.partition)

    async def _send(self, outgoing: Outgoing) -> None:
        value = outgoing.value
        if outgoing.schema is not None:
            value = await self.codec.encode(outgoing.topic, outgoing.schema, value)
        headers = [outgoing.origin.header()] if outgoing.origin else []
        await self.app.producer.send_and_wait(
            outgoing.topic, outgoing.key.encode(), value, None, None, headers
        )

    def _check(self, record: Record) -> None:
        if record.generation != self.generation:
            raise SupersededError


def record_of(message: Any, timestamp_ms: float, generation: int) -> Record:
    """Return a record of Faust's or of aiokafka's, which name their fields alike."""
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
