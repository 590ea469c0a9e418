"""The loop at the heart of every service: consume, handle, flush, commit.

Rules, in the order of their importance:

1. An offset is committed only when everything made out of the records before it (output and
   changed rows) is acknowledged. So a crash anywhere repeats records and loses none.
2. Records are handled only while this instance holds their partition and has read back the
   state that belongs to it. Every rebalance ends the generation: state is dropped and read back
   for what is held next. A batch fetched across a rebalance is put back.
3. A record that cannot be handled goes to `<topic>.dead-letter` and the partition goes on.
4. When Kafka fails, everything is dropped and built anew from the committed offsets and the
   changelogs: one way back, taken at every start.

Acknowledgements are awaited once per batch. While one batch is being acknowledged the next
collects at the broker, so batches grow with the load and there is nothing to tune. Who shares the
machine may want fewer and larger ones at low load too: `batch_interval_ms`. A record that comes
alone does not wait for it, and of a stream of them each waits half of it on average.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord, TopicPartition

from services.common.clock import now_seconds, timestamp_ms
from services.common.kafka import EndOffsets, Topic, build_producer, dead_letter_of, ensure_topics
from services.common.outbox import Outbox
from services.common.settings import Settings
from services.common.telemetry import Metrics

log = logging.getLogger(__name__)

_POLL_MS = 250
_BATCH_RECORDS = 500
_RETRY_SECONDS = 0.5
_PROBE_SECONDS = 2.0

Batches = Mapping[TopicPartition, Sequence[ConsumerRecord]]


class Inputs(Protocol):
    """What a worker may ask of the processor that drives it."""

    async def catch_up(self, *topics: str) -> None:
        """Handle everything that is in the held partitions of `topics` at this moment."""


class Worker(Protocol):
    """What one service does with its records."""

    @property
    def inputs(self) -> Sequence[Topic]:
        """The topics it consumes; of one batch, records of an earlier topic are handled first."""

    @property
    def outputs(self) -> Sequence[Topic]:
        """The topics it writes besides."""

    def connect(self, inputs: Inputs) -> None:
        """Take the processor that drives this worker."""

    async def restore(self, held: Mapping[str, set[int]]) -> Mapping[TopicPartition, int]:
        """Read state back for the partitions held of each topic.

        Return the offsets at which to start; without one the committed offset counts.
        """

    def forget(self) -> None:
        """Drop all state."""

    async def handle(self, record: ConsumerRecord, outbox: Outbox) -> None:
        """Handle one record; an exception sets the record aside."""

    async def tick(self, timestamp_ms: int, outbox: Outbox) -> None:
        """Do what is due by the clock."""

    def flushed(self) -> None:
        """Everything put out so far is acknowledged."""


class Processor(ConsumerRebalanceListener):  # type: ignore[misc, unused-ignore]
    """Drives one worker as a member of the group named after the application."""

    def __init__(
        self,
        application: str,
        settings: Settings,
        worker: Worker,
        metrics: Metrics,
    ) -> None:
        self.application = application
        self.assignor: type[AbstractPartitionAssignor] = RangePartitionAssignor
        self._settings = settings
        self._worker = worker
        self._metrics = metrics
        self._outbox = Outbox()
        self._consumer: AIOKafkaConsumer | None = None
        self._producer: AIOKafkaProducer | None = None
        self._end_offsets: EndOffsets | None = None
        self._batch_lock = asyncio.Lock()
        self._generation = 0
        self._restored_generation = -1
        self._assigned = asyncio.Event()
        # Offsets behind the records handled; they may be committed once the output is flushed.
        self._handled: dict[TopicPartition, int] = {}
        self._flushed: dict[TopicPartition, int] = {}
        self._committed_at = 0.0
        self._is_stopping = False
        worker.connect(self)

    # -- life

    async def run(self) -> None:
        """Process until `stop`; start anew whenever Kafka fails."""
        while not self._is_stopping:
            try:
                await self._start()
                while not self._is_stopping:
                    await self._cycle()
                await self._commit()
            except (KafkaError, OSError, TimeoutError) as error:
                self._metrics.restarts.inc()
                log.warning("processing failed, starting anew error=%r", error)
                await self._pause()
            finally:
                await self._close()

    def stop(self) -> None:
        """Finish the batch in hand, commit, leave the group."""
        self._is_stopping = True
        self._assigned.set()

    async def _pause(self) -> None:
        if not self._is_stopping:
            await asyncio.sleep(_RETRY_SECONDS)

    async def _start(self) -> None:
        topics = self._worker.inputs
        dead_letters = [Topic(dead_letter_of(topic.name), 1) for topic in topics]
        wanted = [*topics, *self._worker.outputs, *dead_letters]
        await ensure_topics(
            self._settings.bootstrap_servers,
            wanted,
            replication_factor=self._settings.replication_factor,
        )
        self._producer = build_producer(self._settings.bootstrap_servers, self.application)
        await self._producer.start()
        self._end_offsets = EndOffsets(self._settings.bootstrap_servers)
        await self._end_offsets.start()
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=self._settings.bootstrap_servers,
            client_id=self.application,
            group_id=self.application,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=self._settings.session_timeout_ms,
            heartbeat_interval_ms=max(self._settings.session_timeout_ms // 4, 100),
            partition_assignment_strategy=(self.assignor,),
        )
        self._consumer.subscribe([topic.name for topic in topics], listener=self)
        await self._consumer.start()

    async def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        producer, self._producer = self._producer, None
        end_offsets, self._end_offsets = self._end_offsets, None
        for client in (consumer, producer, end_offsets):
            if client is not None:
                await client.stop()
        self._end_generation()
        self._outbox = Outbox()

    # -- rebalances, called by aiokafka

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        async with self._batch_lock:
            try:
                await self._commit()
            finally:
                self._end_generation()

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._generation += 1
        self._assigned.set()

    def _end_generation(self) -> None:
        self._generation += 1
        if not self._is_stopping:
            self._assigned.clear()
        self._handled.clear()
        self._flushed.clear()
        self._worker.forget()
        self._metrics.partitions.set(0)

    # -- one turn

    async def _cycle(self) -> None:
        if self._restored_generation != self._generation:
            await self._assigned.wait()
            async with self._batch_lock:
                await self._restore()
            return
        assert self._consumer is not None
        generation = self._generation
        batches = await self._consumer.getmany(timeout_ms=_POLL_MS, max_records=_BATCH_RECORDS)
        begun_at = now_seconds()
        async with self._batch_lock:
            if generation != self._generation:
                self._put_back(batches)
                return
            await self._process(batches)
            if now_seconds() - self._committed_at >= self._settings.commit_interval_ms / 1000:
                await self._commit()
        if 0 < sum(map(len, batches.values())) < _BATCH_RECORDS:
            next_at = begun_at + self._settings.batch_interval_ms / 1000
            await asyncio.sleep(max(0.0, next_at - now_seconds()))

    async def _restore(self) -> None:
        if self._is_stopping or self._consumer is None:
            return
        generation = self._generation
        held: dict[str, set[int]] = {topic.name: set() for topic in self._worker.inputs}
        for partition in self._consumer.assignment():
            held[partition.topic].add(partition.partition)
        offsets = await self._worker.restore(held)
        if generation != self._generation:
            return
        for partition, offset in offsets.items():
            self._consumer.seek(partition, offset)
        self._restored_generation = generation
        self._metrics.partitions.set(sum(map(len, held.values())))
        log.info("partitions held and state restored held=%s", {t: len(p) for t, p in held.items()})

    def _put_back(self, batches: Batches) -> None:
        assert self._consumer is not None
        for partition, records in batches.items():
            if partition in self._consumer.assignment():
                self._consumer.seek(partition, records[0].offset)

    async def _process(self, batches: Batches) -> None:
        started_at = now_seconds()
        await self._handle_all(batches)
        await self._worker.tick(timestamp_ms(), self._outbox)
        if self._outbox:
            assert self._producer is not None
            await self._outbox.flush(self._producer)
        self._flushed |= self._handled
        self._handled.clear()
        self._worker.flushed()
        if batches:
            self._metrics.batch_seconds.observe(now_seconds() - started_at)

    async def _handle_all(self, batches: Batches) -> None:
        for topic in self._worker.inputs:
            for partition in sorted(batches):
                if partition.topic == topic.name:
                    for record in batches[partition]:
                        await self._handle(record)
                        self._handled[partition] = record.offset + 1
                    self._metrics.records.labels(topic.name).inc(len(batches[partition]))

    async def _handle(self, record: ConsumerRecord) -> None:
        mark = self._outbox.mark()
        try:
            await self._worker.handle(record, self._outbox)
        except KafkaError:
            raise
        # The edge of the service: whatever is wrong with one record must not stop the others.
        except Exception as error:
            log.exception("record cannot be handled")
            self._outbox.cut_back(mark)
            self._set_aside(record, error)

    def _set_aside(self, record: ConsumerRecord, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        log.error(
            "record set aside topic=%s partition=%d offset=%d reason=%s",
            record.topic,
            record.partition,
            record.offset,
            reason,
        )
        self._outbox.dead_letter(record, self.application, reason)
        self._metrics.dead_letters.labels(record.topic).inc()

    async def catch_up(self, *topics: str) -> None:
        """Handle everything that is in the held partitions of `topics` at this moment."""
        assert self._consumer is not None
        assert self._end_offsets is not None
        held = [partition for partition in self._consumer.assignment() if partition.topic in topics]
        if not held:
            return
        end_offsets = await self._end_offsets.of(held)
        while True:
            behind = [
                partition
                for partition in held
                if await self._consumer.position(partition) < end_offsets[partition]
            ]
            if not behind:
                return
            await self._handle_all(await self._consumer.getmany(*behind, timeout_ms=_POLL_MS))

    async def _commit(self) -> None:
        self._committed_at = now_seconds()
        if not self._flushed or self._consumer is None:
            return
        offsets, self._flushed = self._flushed, {}
        try:
            await self._consumer.commit(offsets)
        except KafkaError as error:
            # The records will be handled again, by us or by the next owner.
            log.warning("offsets not committed error=%r", error)

    # -- probes

    @property
    def is_restored(self) -> bool:
        return self._consumer is not None and self._restored_generation == self._generation

    async def is_broker_reachable(self) -> bool:
        """Ask the broker for its topics."""
        if self._end_offsets is None:
            return False
        try:
            await asyncio.wait_for(self._end_offsets.ping(), _PROBE_SECONDS)
        except (KafkaError, OSError, TimeoutError):
            return False
        return True

    @property
    def producer(self) -> AIOKafkaProducer | None:
        """The producer, while connected; REST handlers may send with it too."""
        return self._producer
