"""A task of MirrorSource: reads partitions of the source, and writes offset syncs.

Keys, values, headers and timestamps are copied unchanged into the partition with the same number.
The worker calls `commit_record` for each stored record, and the task writes an offset sync when one
is due.
"""

import logging
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
)
from confluent_kafka import TopicPartition as ClientPartition

from common.process.clock import now_ms, timestamp_ms
from millstream.connect import SourceRecord, SourceTask
from millstream.connect.connectors import RecordMetadata, Settings, TaskMetric, TopicPartition
from millstream.connect.data.records import NO_HEADERS, Header, Headers
from millstream.connect.errors import ConnectException
from millstream.mirror.records import OffsetSync
from mirror.cluster import MirrorCluster
from mirror.copying.lost_offsets import Gap, resumed_after_reset
from mirror.copying.topic_identity import TopicIdentity
from mirror.definitions import SOURCE
from mirror.metrics import PartitionMetrics, metrics
from mirror.offsets.sync_queue import SyncQueue
from mirror.settings import MirrorSettings
from mirror.source_offsets import TOPIC_ID, Place, resume_offset
from mirror.topics import decoded


class Run(NamedTuple):
    """Consecutive messages of one partition, and their offsets."""

    at: TopicPartition
    messages: list[Any]
    offsets: list[int]


def runs_of(messages: Iterable[Any]) -> Iterator[Run]:
    for at, together in groupby(messages, _place):
        found = list(together)
        yield Run(TopicPartition(*at), found, [each.offset() for each in found])


def _place(message: Any) -> tuple[str, int]:
    return message.topic(), message.partition()


log = logging.getLogger(__name__)

_MAX_RECORDS: Final = 1_000
_LONGEST_WAIT_SECONDS: Final = 0.05
_FLUSH_SECONDS: Final = 2.0
_ENDS_MS: Final = 1_000
_ASKING_SECONDS: Final = 2.0
_GAPS_SHOWN: Final = 10


class MirrorSourceTask(SourceTask):
    """Owns the consumer of the source and the producer of offset syncs."""

    kafka_class = "org.apache.kafka.connect.mirror.MirrorSourceTask"

    @classmethod
    def version(cls) -> str:
        return "4.3.1"

    def start(self, settings: Settings) -> None:
        super().start(settings)
        made = MirrorSettings.of(SOURCE, settings)
        self._flow = made.flow()
        self._wait_seconds = min(made["consumer.poll.timeout.ms"] / 1000, _LONGEST_WAIT_SECONDS)
        self._partitions = decoded(settings["task.assigned.partitions"])
        self._topic_ids = _topic_ids(settings.get("task.assigned.topic.ids", ""))
        self._identity = TopicIdentity()
        self._unproven: list[Run] = []
        """Runs that were read, but whose topic ids are not checked yet."""
        admin = made.admin("source", "identity-admin")
        self._source = MirrorCluster(made.source, admin, made.timeout_seconds)
        self._source.keep()
        self._places = {at: Place(made.source, at) for at in self._partitions}
        self._remote = {at.topic: self._flow.remote_topic(at.topic) for at in self._partitions}
        self.figures = {at: PartitionMetrics() for at in self._partitions}
        self._next_ends_ms = 0
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._lost: set[TopicPartition] = set()
        """Partitions whose offset the source has refused, until a new offset is found."""
        self.gaps: list[Gap] = []
        self._consumer: Consumer | None = None
        self._producer: Producer | None = None
        self._syncs = SyncQueue(made["offset.lag.max"])
        self._syncs_topic = made.offset_syncs_topic
        if made["emit.offset-syncs.enabled"]:
            side = made.offset_syncs_side
            self._producer = Producer(made.producer(side, f"offset-syncs-{side}-producer"))
        self._consumer = self._assigned(made)

    def _assigned(self, flow_settings: MirrorSettings) -> Consumer:
        told = flow_settings.consumer("source", "replication-consumer")
        begins = OFFSET_END if told["auto.offset.reset"] in ("latest", "end") else OFFSET_BEGINNING
        kept = self.context.offset_storage_reader.offsets(list(self._places.values()))
        self._skips_to_end = begins == OFFSET_END
        # The task itself decides where to continue, so that it can report missing offsets.
        own = {"enable.partition.eof": "true", "auto.offset.reset": "error"}
        consumer = Consumer({**told, **own})
        assignment = []
        for at, offset in zip(self._partitions, kept, strict=True):
            resumed = resume_offset(offset, self._topic_ids.get(at.topic))
            if resumed is None and offset is not None:
                log.warning("topic is another one now and is copied anew topic=%s", at.topic)
            if resumed is not None:
                self.figures[at].resumes(resumed)
            assignment.append(ClientPartition(*at, begins if resumed is None else resumed))
        consumer.assign(assignment)
        log.info("copies flow=%s partitions=%s", self._flow, len(assignment))
        return consumer

    # --- records ---

    def poll(self) -> list[SourceRecord] | None:
        with self._lock:
            if self._stopping.is_set() or self._consumer is None:
                return None
            if now_ms() >= self._next_ends_ms:
                self._look_at_ends(self._consumer)
            self._go_on(self._consumer)
            runs = self._unproven or list(runs_of(self._read(self._consumer)))
            self._unproven = []
            proven = self._proven(self._consumer, runs) if runs else []
        self._serve_syncs()
        now = timestamp_ms()
        return [record for each in proven for record in self._records(each, now)]

    def _read(self, consumer: Consumer) -> list[Any]:
        """Wait a while for records; the end of a partition does not end the wait.

        After an empty poll the worker pauses before the next one, which would delay new records.
        """
        deadline_ms = now_ms() + int(1000 * self._wait_seconds)
        while True:
            first = consumer.poll(max(0, deadline_ms - now_ms()) / 1000)
            if first is None:
                return []
            messages = [first, *consumer.consume(_MAX_RECORDS - 1, 0)]
            records = [each for each in messages if each.error() is None or self._is_record(each)]
            if records or now_ms() >= deadline_ms:
                return records

    def _proven(self, consumer: Consumer, runs: list[Run]) -> list[Run]:
        """Drop records of a topic that was created again; it is copied from its beginning."""
        read = ((each.at, each.offsets) for each in runs)
        doubtful = self._identity.doubtful(read, now_ms()) & self._topic_ids.keys()
        if not doubtful:
            return runs
        try:
            found = self._source.topics(doubtful)
        except ConnectException as error:
            log.warning("topics cannot be described: %s", error)
            self._unproven = runs
            return []
        self._identity.proven(doubtful, now_ms())
        others = {
            name: topic.topic_id
            for name, topic in found.items()
            if topic.topic_id != self._topic_ids[name]
        }
        for name, topic_id in others.items():
            self._begin_anew(consumer, name, topic_id)
        return [each for each in runs if each.at.topic not in others]

    def _begin_anew(self, consumer: Consumer, topic: str, topic_id: str) -> None:
        log.warning("topic is another one now and is copied anew topic=%s", topic)
        self._topic_ids[topic] = topic_id
        self._identity.begins_anew(topic)
        for at in self._partitions:
            if at.topic == topic:
                self.figures[at] = PartitionMetrics()
                consumer.seek(ClientPartition(*at, OFFSET_BEGINNING))

    def _look_at_ends(self, consumer: Consumer) -> None:
        """Record the source's end offsets from the last fetches."""
        self._next_ends_ms = now_ms() + _ENDS_MS
        for at, figures in self.figures.items():
            figures.pass_time(now_ms())
            _, end = consumer.get_watermark_offsets(ClientPartition(*at), cached=True) or (0, 0)
            figures.end_offset = max(figures.end_offset, end)

    def _go_on(self, consumer: Consumer) -> None:
        """Find the offset to continue at for partitions whose offset the source has refused."""
        for at in sorted(self._lost):
            try:
                offsets = consumer.get_watermark_offsets(ClientPartition(*at), _ASKING_SECONDS)
            except KafkaException as error:
                log.warning(
                    "offsets of the source cannot be read topic=%s error=%s", at.topic, error
                )
                continue
            if offsets is not None:
                self._lost.discard(at)
                self._resume(consumer, at, offsets)

    def _resume(self, consumer: Consumer, at: TopicPartition, offsets: tuple[int, int]) -> None:
        figures = self.figures[at]
        position = figures.next_offset or 0
        found = resumed_after_reset(at, position, offsets, skips_to_end=self._skips_to_end)
        if found.gap is None:
            log.warning(
                "source refused an offset topic=%s partition=%d offset=%d goes_on_at=%d",
                *at,
                position,
                found.offset,
            )
        else:
            log.warning(
                "source deleted records before they were copied missing: %s, %d in all",
                found.gap,
                found.gap.size,
            )
            self.gaps = [*self.gaps, found.gap][-_GAPS_SHOWN:]
            figures.missing += found.gap.size
        figures.next_offset = found.offset
        if figures.stored == figures.read:
            figures.resumes(found.offset)
        # librdkafka does not fetch or seek in a partition whose offset was refused.
        consumer.incremental_unassign([ClientPartition(*at)])
        consumer.incremental_assign([ClientPartition(*at, found.offset)])

    def note(self) -> str | None:
        """Return a note about missing offsets, of which no copy can be made."""
        if not self.gaps:
            return None
        missing = ", ".join(map(str, self.gaps))
        return f"The source deleted records before they were copied: {missing}."

    def _is_record(self, message: Any) -> bool:
        error = message.error()
        if error is None:
            return True
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's code
            at = TopicPartition(message.topic(), message.partition())
            self.figures[at].ended(message.offset())
            return False
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - as above
            self._lost.add(TopicPartition(message.topic(), message.partition()))
            return False
        if error.fatal():
            raise ConnectException(f"the source cannot be read: {error}")
        log.warning("error from the source topic=%s error=%s", message.topic(), error)
        return False

    def _records(self, run: Run, now: int) -> list[SourceRecord]:
        """Return the records of a run; look up their common data once."""
        (topic, partition), messages, offsets = run
        timestamps = [each.timestamp()[1] for each in messages]
        self.figures[run.at].were_read(offsets[-1], [now - each for each in timestamps])
        remote, place = self._remote[topic], self._places[run.at]
        topic_id = self._topic_ids.get(topic)
        of_topic = {} if topic_id is None else {TOPIC_ID: topic_id}
        return [
            SourceRecord(
                topic=remote,
                kafka_partition=partition,
                key=message.key(),
                value=message.value(),
                timestamp_ms=None if timestamp < 0 else timestamp,
                headers=_headers(message.headers()),
                source_partition=place,
                source_offset={"offset": offset, **of_topic},
            )
            for message, offset, timestamp in zip(messages, offsets, timestamps, strict=True)
        ]

    def metrics(self) -> Iterable[TaskMetric]:
        return metrics(self._flow, self.figures, now_ms())

    # --- offset syncs ---

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        assert record.source_offset is not None
        place, offset = record.source_partition, record.source_offset["offset"]
        assert isinstance(place, Place), place
        at = place.at
        latency_ms = timestamp_ms() - (record.timestamp_ms or 0)
        self.figures[at].was_stored(offset, len(record.value or b""), latency_ms)
        # A record without metadata was filtered out: it has no offset in the target.
        if metadata is None or self._producer is None:
            return
        if self._syncs.stored(at, offset, metadata.offset):
            self._serve_syncs()

    def commit(self) -> None:
        self._syncs.promote()
        self._serve_syncs()

    def _serve_syncs(self) -> None:
        producer = self._producer  # Another thread may stop the task at the same time.
        if producer is None:
            return
        producer.poll(0)
        for sync in self._syncs.take():
            written = partial(self._written, sync)
            key, value = sync.record_key(), sync.record_value()
            try:
                producer.produce(self._syncs_topic, value, key, partition=0, on_delivery=written)
            except (BufferError, KafkaException) as error:
                self._written(sync, error, None)
        producer.poll(0)

    def _written(self, sync: OffsetSync, error: Any, _: Any) -> None:
        if error is None:
            self._syncs.written()
            return
        log.warning("offset sync was not written sync=%s error=%s", sync, error)
        self._syncs.lost(sync)

    def stop(self) -> None:
        """Called in the task's thread, or from outside while a poll waits, which is short."""
        self._stopping.set()
        with self._lock:
            consumer, self._consumer = self._consumer, None
            if consumer is None:
                return
            self._source.close()
            producer, self._producer = self._producer, None
            if producer is not None:
                producer.flush(_FLUSH_SECONDS)
            consumer.close()


def _headers(told: Any) -> Headers:
    return Headers(Header(*each) for each in told) if told else NO_HEADERS


def _topic_ids(text: str) -> dict[str, str]:
    pairs = (each.partition("=") for each in text.split(",") if each)
    return {topic: topic_id for topic, _, topic_id in pairs}
