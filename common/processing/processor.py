"""The loop at the heart of every service: consume, handle, commit.

Rules, in the order of their importance:

1. What is made out of a batch (output and changed rows) and the offsets behind it are committed in
   one transaction: a crash at any line leaves each record handled exactly once
   (`common/kafka/transactions`). The rows and offsets of a batch without output are committed with
   the next batch that has some, or by themselves within `commit_interval_ms`.
2. Records are handled only while this instance holds their partition and has read back the
   state that belongs to it. Every rebalance ends the generation: state is dropped and read back
   for what is held next. A batch fetched across a rebalance is put back; one that is being
   committed is finished before the partitions are given up; one of a generation that is over is
   refused by the group, whatever this instance believes (KIP-447). Each changed row is committed
   with an offset of its partition, even if it was made of a record of another partition or by the
   clock: so the next holder of a partition finds its rows and its offsets settled together.
3. A record that cannot be handled goes to `<topic>.dead-letter` and the partition goes on.
4. When Kafka or a transaction fails, everything is dropped and built anew from the committed
   offsets and the changelogs. Every start takes the same way.

While one batch is being committed the next collects at the broker, so batches grow with the load
and need no tuning. On a shared machine `batch_interval_ms` makes fewer and larger batches at low
load too: a record that comes alone does not wait for it, one of a stream waits half of it on
average.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence

from aiokafka import ConsumerRebalanceListener
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord, TopicPartition

from common.kafka.assignment import DEFAULT, Assignor
from common.kafka.consumer import METADATA_MAX_AGE_MS, Consumer
from common.kafka.inbox import Inbox
from common.kafka.reading import EndOffsets
from common.kafka.stopping import stop
from common.kafka.topic_creation import ensure_topics
from common.kafka.transactions.producer import TransactionalProducer, TransactionError
from common.kafka.transactions.rules import Member
from common.process import traces
from common.process.clock import now_seconds, timestamp_ms
from common.process.tasks import spawn
from common.process.telemetry import Metrics
from common.processing.dead_letters import dead_letter_topic, reason_of
from common.processing.outbox import Outbox, Outgoing
from common.processing.requests import NotAcceptedError, RequestWriter
from common.processing.settings import Settings
from common.processing.worker import Worker

log = logging.getLogger(__name__)

_POLL_MS = 250
_BATCH_RECORDS = 500
_RETRY_SECONDS = 0.5
_PROBE_SECONDS = 2.0
_MEASURE_SECONDS = 1.0

Batches = Mapping[TopicPartition, Sequence[ConsumerRecord]]


class _RevokedError(KafkaError):  # type: ignore[misc, unused-ignore]
    """The partitions are about to be given up, so the records that the batch waits for will not
    come."""


class Processor(ConsumerRebalanceListener):  # type: ignore[misc, unused-ignore]
    """Drives one worker as a member of the group named after the application."""

    def __init__(
        self,
        application: str,
        settings: Settings,
        worker: Worker,
        metrics: Metrics,
        *,
        request_fence: str | None = None,
    ) -> None:
        self.application = application
        self.assignor: Assignor = DEFAULT
        self.fault_delay_ms = 0
        """How long each batch waits before it is handled: a fault for trials."""
        self._settings = settings
        self._worker = worker
        self._metrics = metrics
        self._outbox = Outbox()
        self._request_fence = request_fence
        self._consumer: Inbox | None = None
        self._requests: RequestWriter | None = None
        self._transactions: TransactionalProducer | None = None
        self._end_offsets: EndOffsets | None = None
        self._member: Member | None = None
        self._batch_lock = asyncio.Lock()
        self._revoking = asyncio.Event()
        self._generation = 0
        self._restored_generation = -1
        self._assigned = asyncio.Event()
        # Offsets behind the records handled since the last commit, and behind all of them.
        self._handled: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._open_since: float | None = None
        self._measured_at = 0.0
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
                async with self._batch_lock:
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
        dead_letters = [dead_letter_topic(topic.name) for topic in topics]
        wanted = [*topics, *self._worker.outputs, *dead_letters]
        await ensure_topics(
            self._settings.kafka,
            wanted,
            replication_factor=self._settings.replication_factor,
        )
        self._transactions = self._build_transactions(self.application)
        await self._transactions.start(topic.name for topic in wanted)
        if self._request_fence is not None:
            producer = self._build_transactions(f"{self.application}-requests")
            self._requests = RequestWriter(
                producer,
                self._request_fence,
                self._position_of,
                self._settings.request_interval_ms / 1000,
            )
            await self._requests.start(topic.name for topic in wanted)
        self._end_offsets = EndOffsets(self._settings.kafka)
        await self._end_offsets.start()
        consumer = Consumer(
            **self._settings.kafka.aiokafka(),
            client_id=self.application,
            group_id=self.application,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            session_timeout_ms=self._settings.session_timeout_ms,
            heartbeat_interval_ms=max(self._settings.session_timeout_ms // 4, 100),
            partition_assignment_strategy=(self.assignor,),
            metadata_max_age_ms=METADATA_MAX_AGE_MS,
        )
        consumer.subscribe([topic.name for topic in topics], listener=self)
        # Partitions may be assigned before the start is over.
        self._consumer = Inbox(consumer, self._settings.batch_interval_ms)
        await self._consumer.start()

    def _build_transactions(self, application: str) -> TransactionalProducer:
        return TransactionalProducer(
            self._settings.kafka,
            application,
            timeout_ms=self._settings.session_timeout_ms,
        )

    async def _position_of(self, partition: TopicPartition) -> int:
        if self._consumer is None:
            raise NotAcceptedError
        return int(await self._consumer.position(partition))

    async def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        requests, self._requests = self._requests, None
        transactions, self._transactions = self._transactions, None
        end_offsets, self._end_offsets = self._end_offsets, None
        await stop(consumer, requests, transactions, end_offsets)
        self._end_generation()

    # -- rebalances, called by aiokafka

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._revoking.set()
        if self._requests is not None:
            await self._requests.settle()
        async with self._batch_lock:
            try:
                await self._commit()
            except KafkaError as error:
                # The next holder of the partitions handles the records again.
                log.warning("offsets not committed error=%r", error)
            finally:
                self._end_generation()

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        assert self._consumer is not None
        self._consumer.forget()
        # A member that the group has removed could otherwise commit as if it were in no group.
        self._member = Member(self.application, *self._consumer.membership())
        self._generation += 1
        self._revoking.clear()
        self._assigned.set()

    def _end_generation(self) -> None:
        self._generation += 1
        if not self._is_stopping:
            self._assigned.clear()
        self._handled.clear()
        self._positions.clear()
        self._outbox = Outbox()
        self._open_since = None
        if self._requests is not None:
            self._requests.refuse()
        self._worker.forget()
        self._metrics.partitions.set(0)

    # -- one turn

    async def _cycle(self) -> None:
        if self._restored_generation != self._generation:
            await self._assigned.wait()
            async with self._batch_lock:
                await self._restore()
            return
        if self._requests is not None and self._requests.failure is not None:
            raise self._requests.failure
        assert self._consumer is not None
        generation = self._generation
        batches = await self._consumer.getmany(timeout_ms=_POLL_MS, max_records=_BATCH_RECORDS)
        begun_at = now_seconds()
        if self.fault_delay_ms and batches:
            await asyncio.sleep(self.fault_delay_ms / 1000)
        async with self._batch_lock:
            if generation != self._generation:
                self._put_back(batches)
                return
            try:
                await self._process(batches)
            except _RevokedError:
                self._end_generation()
                return
        if 0 < sum(map(len, batches.values())) < _BATCH_RECORDS:
            next_at = begun_at + self._settings.batch_interval_ms / 1000
            await asyncio.sleep(max(0.0, next_at - now_seconds()))

    async def _restore(self) -> None:
        if self._is_stopping or self._consumer is None:
            return
        assert self._transactions is not None
        generation = self._generation
        held: dict[str, set[int]] = {topic.name: set() for topic in self._worker.inputs}
        for partition in self._consumer.assignment():
            held[partition.topic].add(partition.partition)
        numbers = set[int]().union(*held.values())
        await self._transactions.take(numbers)
        if self._requests is not None and self._member is not None:
            await self._requests.take(numbers, self._member)
        # These are settled, and so then are the changelogs: both are in the same transactions.
        offsets = await self._transactions.committed(
            self.application, sorted(self._consumer.assignment())
        )
        offsets |= await self._worker.restore(held)
        if generation != self._generation:
            return
        for partition, offset in offsets.items():
            self._consumer.seek(partition, offset)
        self._positions = dict(offsets)
        self._restored_generation = generation
        if self._requests is not None:
            self._requests.accept()
        self._metrics.partitions.set(sum(map(len, held.values())))
        log.info("partitions held and state restored held=%s", {t: len(p) for t, p in held.items()})

    def _put_back(self, batches: Batches) -> None:
        assert self._consumer is not None
        for partition, records in batches.items():
            if partition in self._consumer.assignment():
                self._consumer.seek(partition, records[0].offset)

    async def _process(self, batches: Batches) -> None:
        started_at = now_seconds()
        if traces.recorder is not None:
            traces.recorder.begin_batch()
        await self._handle_all(batches)
        await self._worker.tick(timestamp_ms(), self._outbox)
        if self._is_commit_due(started_at):
            await self._commit()
        if batches:
            self._metrics.batch_seconds.observe(now_seconds() - started_at)
        if started_at - self._measured_at >= _MEASURE_SECONDS:
            self._measured_at = started_at
            await self._measure_lag()

    def _is_commit_due(self, started_at: float) -> bool:
        if not (self._outbox or self._handled):
            return False
        if self._open_since is None:
            self._open_since = started_at
        waited_seconds = now_seconds() - self._open_since
        return bool(self._outbox.outgoing) or (
            waited_seconds >= self._settings.commit_interval_ms / 1000
        )

    async def _measure_lag(self) -> None:
        assert self._consumer is not None
        lags = dict.fromkeys((topic.name for topic in self._worker.inputs), 0)
        for partition in self._consumer.assignment():
            # Unknown until the first fetch is answered.
            high_watermark = self._consumer.highwater(partition)
            if high_watermark is not None:
                position = await self._consumer.position(partition)
                lags[partition.topic] += high_watermark - position
        for topic, lag in lags.items():
            self._metrics.lag.labels(topic).set(lag)

    async def _handle_all(self, batches: Batches) -> None:
        for topic in self._worker.inputs:
            for partition in sorted(batches):
                if partition.topic == topic.name:
                    for record in batches[partition]:
                        await self._handle(record)
                        self._handled[partition] = self._positions[partition] = record.offset + 1
                    self._metrics.records.labels(topic.name).inc(len(batches[partition]))

    async def _handle(self, record: ConsumerRecord) -> None:
        outbox = Outbox()
        try:
            await self._worker.handle(record, outbox)
        except KafkaError:
            raise
        # The edge of the service: one bad record must not stop the others.
        except Exception as error:
            log.exception("record cannot be handled")
            self._set_aside(record, error)
        else:
            self._outbox.take_in(outbox)

    def _set_aside(self, record: ConsumerRecord, error: Exception) -> None:
        reason = reason_of(error)
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
            await self._handle_all(await self._fetch_unless_revoked(behind))

    async def _fetch_unless_revoked(self, partitions: list[TopicPartition]) -> Batches:
        """Fetch; raise _RevokedError when a rebalance begins: it waits for this batch to end."""
        assert self._consumer is not None
        fetching = spawn(self._consumer.getmany(*partitions, timeout_ms=_POLL_MS))
        revoking = spawn(self._revoking.wait())
        try:
            await asyncio.wait({fetching, revoking}, return_when=asyncio.FIRST_COMPLETED)
            if self._revoking.is_set():
                raise _RevokedError
            batches: Batches = fetching.result()
            return batches
        finally:
            fetching.cancel()
            revoking.cancel()

    async def _commit(self) -> None:
        """Commit the offsets and the effects of what was handled. The caller holds the batch
        lock."""
        self._open_since = None
        if not (self._outbox or self._handled) or self._consumer is None:
            return
        assert self._transactions is not None
        assert self._member is not None
        offsets, self._handled = self._with_rows(self._handled), {}
        outgoing = self._outbox.take()
        try:
            await self._transactions.commit(outgoing, offsets, self._member)
        except TransactionError as error:
            self._metrics.transactions.labels(error.outcome.value).inc()
            raise
        self._metrics.transactions.labels("committed").inc()
        if traces.recorder is not None:
            self._tell_spans(traces.recorder, outgoing)
        self._worker.flushed()

    def _with_rows(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Add an offset of each partition of which a row has changed, where there is none."""
        whole = dict(offsets)
        numbers = {partition.partition for partition in offsets}
        first = self._worker.inputs[0].name
        for change in self._outbox.changes:
            if change.partition is not None and change.partition not in numbers:
                numbers.add(change.partition)
                partition = TopicPartition(first, change.partition)
                # Where nothing is committed, 0 does not change where a consumer starts.
                whole[partition] = self._positions.get(partition, 0)
        return whole

    def _tell_spans(self, recorder: traces.Recorder, committed: Sequence[Outgoing]) -> None:
        for made in committed:
            sent = traces.Operation(
                "send",
                made.topic,
                self.application,
                key=made.key,
                partition=made.partition,
                is_tombstone=made.value is None,
            )
            recorder.finish(made.headers, sent)
        recorder.forget()

    # -- probes

    @property
    def is_restored(self) -> bool:
        is_writing = self._requests is None or self._requests.is_writing
        return (
            self._consumer is not None
            and self._restored_generation == self._generation
            and is_writing
        )

    async def is_broker_reachable(self) -> bool:
        """Ask the broker for its topics."""
        if self._end_offsets is None:
            return False
        try:
            await asyncio.wait_for(self._end_offsets.ping(), _PROBE_SECONDS)
        except (KafkaError, OSError, TimeoutError):
            return False
        return True

    # -- requests

    async def write(self, record: Outgoing) -> None:
        """Commit one record of a held partition; raise KafkaError if it is not committed."""
        if self._requests is None:
            raise NotAcceptedError
        await self._requests.write(record)
