"""The loop of a source task: poll, transform, convert, send.

Its `Delivery`, in `at_least_once` or `exactly_once`, decides when offsets are written. Both send
through the task's `Sender`.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from confluent_kafka import KafkaException, Producer

from common.process import traces
from common.process.clock import now_ms
from common.process.json_text import is_unicode
from connect.converters.primitives import ByteArrayConverter
from connect.errors.tolerance import Stage
from connect.worker.offset_store import OffsetStore, Reader
from connect.worker.offsets.kafka_store import ConnectorOffsets
from connect.worker.record_plugins import Converters, TransformationStage
from connect.worker.tasks.own_metrics import OwnMetrics
from connect.worker.tasks.spans import Delivered, telling
from connect.worker.tasks.steps import SKIPPED, Steps
from connect.worker.tasks.thread import TaskCounts, TaskThread
from connect.worker.topics import TopicCreation
from millstream.connect.connectors import (
    RecordMetadata,
    SourcePartition,
    SourceTask,
    TransactionContext,
)
from millstream.connect.data.records import SourceRecord
from millstream.connect.errors import ConnectException, DataException, RetriableException

log = logging.getLogger(__name__)

_IDLE_WAIT_MS: Final = 10
_RETRY_WAIT_MS: Final = 100
_HELD_WAIT_MS: Final = 500
_FULL_WAIT_SECONDS: Final = 0.1
_TOPIC_REMINDER_MS: Final = 1_000
ANY_PARTITION: Final = -1
NOW: Final = 0

MessageHeaders = list[tuple[str, str | bytes | None]]
Message = tuple[str, Any, Any, int, int, MessageHeaders | None]
"""The arguments of a `produce`: topic, value, key, partition, timestamp and headers."""


@dataclass(frozen=True, slots=True)
class SourceParts:
    """The parts of a source task."""

    task: SourceTask
    config: Mapping[str, str]
    stages: list[TransformationStage]
    converters: Converters
    steps: Steps
    producer: dict[str, Any]
    topics: TopicCreation
    offsets: OffsetStore
    flush_interval_ms: int
    flush_timeout_ms: int
    own_offsets: ConnectorOffsets | None = None
    """The same object as `offsets` when the connector has its own offset topic, else None."""


@dataclass(frozen=True, slots=True)
class _Context:
    """The worker's side of `SourceTaskContext`."""

    configs: Mapping[str, str]
    offset_storage_reader: Reader
    transaction_context: TransactionContext | None


class Sender:
    """Owns the producer of a source task, and tells the task what became of its records.

    All methods run in the task's thread.
    """

    def __init__(self, thread: TaskThread, parts: SourceParts, counts: TaskCounts) -> None:
        self.counts = counts
        self.error: Exception | None = None
        """Why a record could not be stored; the task fails with it."""
        self.next_commit_ms = 0
        self.tells_records = type(parts.task).commit_record is not SourceTask.commit_record
        self._thread = thread
        self._parts = parts
        self._producer: Producer | None = None
        self._topics_seen: set[str] = set()
        """The topics whose use was reported since the last reminder."""
        self._next_reminder_ms = 0

    def start(self, producer: Producer) -> None:
        self._producer = producer

    def close(self) -> None:
        """Drop what is not sent."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    @property
    def producer(self) -> Producer:
        assert self._producer is not None, "the sender is not started"
        return self._producer

    def produce(self, message: Message, delivered: Delivered) -> None:
        """Hand a message to the producer; wait while its queue is full. Raises ConnectException."""
        topic, value, key, partition, timestamp_ms, headers = message
        if headers and traces.recorder is not None:
            delivered = telling(traces.recorder, headers, delivered)
        while True:
            if self._thread.is_left:
                raise ConnectException("the task was left behind")
            try:
                # Positional: keyword arguments double the cost of this call. The None after the
                # callback stands for the callback's other name.
                self.producer.produce(
                    topic, value, key, partition, delivered, None, timestamp_ms, headers
                )
            except BufferError:
                # The queue is full: the brokers are slower than the source, or unreachable.
                self.producer.poll(_FULL_WAIT_SECONDS)
                if self._thread.control.is_stopping:
                    raise ConnectException("stopped while records could not be sent") from None
                continue
            except (KafkaException, ValueError, TypeError) as error:
                raise ConnectException("Unrecoverable exception trying to send") from error
            return

    def serve(self) -> None:
        """Process delivery reports. Topics in use are reported once a second."""
        self.producer.poll(0)
        if now_ms() >= self._next_reminder_ms:
            self._next_reminder_ms = now_ms() + _TOPIC_REMINDER_MS
            self._topics_seen.clear()

    def fail(self, error: Exception) -> None:
        """Keep the first error, for `require_no_error`."""
        self.error = self.error or error

    def require_no_error(self) -> None:
        """Raises ConnectException if a record could not be stored."""
        if self.error is not None:
            raise ConnectException(
                "Unrecoverable exception from producer send callback"
            ) from self.error

    def count_stored(self, message: Any) -> RecordMetadata | None:
        """Count a stored record; return its position if the task has a `commit_record`."""
        self.counts.source_record_write_total += 1
        topic = message.topic()
        if topic not in self._topics_seen:
            self._topics_seen.add(topic)
            self._thread.topic_used(topic)
        if not self.tells_records:
            return None
        _, timestamp = message.timestamp()
        return RecordMetadata(topic, message.partition(), message.offset(), timestamp)

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """Call the task's `commit_record`, if it has one."""
        if self.tells_records:
            self._tell("commit_record", self._parts.task.commit_record, record, metadata)

    def commit(self) -> None:
        """Call the task's `commit`, and begin the next interval."""
        self.next_commit_ms = now_ms() + self._parts.flush_interval_ms
        self._tell("commit", self._parts.task.commit)

    def _tell(self, name: str, method: Callable[..., Any], *what: Any) -> None:
        try:
            self._thread.caller(method, *what)
        # As in Kafka Connect, an error in these methods is logged and ignored.
        except Exception as error:  # noqa: BLE001
            trace = self._thread.concealing.trace(error)
            log.error("%s raised task=%s\n%s", name, self._thread.task, trace)


class Delivery(Protocol):
    """Decides when offsets are written. All methods run in the task's thread."""

    transaction_context: TransactionContext | None

    def make_producer(self) -> Producer:
        """Return the producer, ready to send. Raises ConnectException."""

    def begin(self) -> None:
        """Begin, or go on after a pause."""

    def send(self, message: Message, polled: SourceRecord) -> None:
        """Pass a converted record to the sender."""

    def leave_out(self, polled: SourceRecord) -> None:
        """Note that a record is left out."""

    def serve(self) -> None:
        """Process delivery reports, and write offsets when it is time."""

    def pause(self) -> None:
        """Prepare for a pause, which may be long."""

    def finish(self, *, is_failed: bool) -> None:
        """Write the offsets of the stored records: the task stops, or it has failed."""

    def give_up(self) -> None:
        """Drop uncommitted records; called after the task has stopped."""


class SourceWork:
    """Polls a source task, converts its records and passes them to its delivery. In one thread."""

    def __init__(
        self, thread: TaskThread, parts: SourceParts, sender: Sender, delivery: Delivery
    ) -> None:
        self.counts = sender.counts
        self._thread = thread
        self._control = thread.control
        # A request to resume may come before the first look at the control: report it as well.
        self._is_held = thread.control.began_paused
        self._call = thread.caller
        self._parts = parts
        self._task = parts.task
        self._sender = sender
        self._delivery = delivery
        self._is_started = False
        self._is_stopped = False
        self._keeps_bytes = (
            type(parts.converters.key) is ByteArrayConverter
            and type(parts.converters.value) is ByteArrayConverter
        )

    # --- its life ---

    def begin(self) -> str:
        reader = Reader(self._parts.offsets, self._thread.task.connector)
        self._task.context = _Context(
            self._parts.config, reader, self._delivery.transaction_context
        )
        self._sender.start(self._delivery.make_producer())
        if self._parts.own_offsets is not None:
            self._parts.own_offsets.start()
        self._is_started = True
        self._call(self._task.start, dict(self._parts.config))
        # Set after the start: metrics are read at any time, and a task has none before it starts.
        self.counts.own_metrics = OwnMetrics(
            self._thread.task, self._task.metrics, self._thread.concealing
        )
        self._sender.next_commit_ms = now_ms() + self._parts.flush_interval_ms
        return type(self._task).version()

    def go_on(self) -> None:
        """Run until the task is to stop, and write the last offsets."""
        try:
            self._delivery.begin()
            self._run()
        except BaseException:
            self._delivery.finish(is_failed=True)
            raise
        self._delivery.finish(is_failed=False)

    def _run(self) -> None:
        while not self._control.is_stopping:
            if self._control.is_paused or self._is_held:
                self._hold()
                continue
            self._sender.require_no_error()
            records = self._poll()
            self._thread.take_note(self._task.note())
            for record in records:
                if self._sender.error is not None:
                    self._sender.require_no_error()
                self._send(record)
            self._delivery.serve()

    def end(self) -> None:
        if self._is_started and not self._is_stopped:
            self._is_stopped = True
            self._call(self._task.stop)
        self._delivery.give_up()
        self._sender.close()
        for stage in self._parts.stages:
            stage.transformation.close()
        if self._parts.own_offsets is not None:
            self._parts.own_offsets.stop()

    def interrupt(self) -> None:
        if self._is_started and not self._is_stopped:
            self._is_stopped = True
            self._call.from_outside(self._task.stop)

    def _hold(self) -> None:
        self._delivery.pause()
        if not self._is_held:
            self._is_held = True
            self._thread.held(True)
        while self._control.is_paused and not self._control.wait(_HELD_WAIT_MS):
            self._delivery.serve()
        if not self._control.is_stopping:
            self._is_held = False
            self._thread.held(False)
        self._delivery.begin()

    # --- records ---

    def _poll(self) -> list[SourceRecord]:
        try:
            polled: Iterable[SourceRecord] | None = self._call(self._task.poll)
        except RetriableException as error:
            trace = self._thread.concealing.trace(error)
            log.warning("poll failed and is tried again task=%s\n%s", self._thread.task, trace)
            self._control.wait(_RETRY_WAIT_MS)
            return []
        records = list(polled or ())
        if not records:
            self._control.wait(_IDLE_WAIT_MS)
        self.counts.source_record_poll_total += len(records)
        return records

    def _send(self, polled: SourceRecord) -> None:
        parts, message = self._parts, None
        record: Any = polled
        if parts.stages:
            record = parts.steps.transform(parts.stages, polled, polled)
        if record is not None and record is not SKIPPED:
            message = self._converted(record, polled)
        if message is None:
            self._delivery.leave_out(polled)
            return
        parts.topics.ensure(record.topic)
        self._delivery.send(message, polled)

    def _converted(self, record: SourceRecord, polled: SourceRecord) -> Message | None:
        """Return the message for the producer, None when the record is left out."""
        if self._stays_bytes(record):
            key, value, headers = record.key, record.value, None
        else:
            converted = self._in_bytes(record, polled)
            if converted is None:
                return None
            key, value, headers = converted
        partition, timestamp_ms = record.kafka_partition, record.timestamp_ms
        if partition is None:
            partition = ANY_PARTITION
        if timestamp_ms is None:
            timestamp_ms = NOW
        elif timestamp_ms < 0:
            raise ConnectException(f"Invalid record timestamp {timestamp_ms}")
        return record.topic, value, key, partition, timestamp_ms, headers

    def _stays_bytes(self, record: SourceRecord) -> bool:
        """Return whether the record is sent as it is, without conversion."""
        key, value = record.key, record.value
        return (
            self._keeps_bytes
            and not record.headers
            and (key is None or type(key) is bytes)
            and (value is None or type(value) is bytes)
            and record.key_schema is None
            and record.value_schema is None
        )

    def _in_bytes(
        self, record: SourceRecord, polled: SourceRecord
    ) -> tuple[Any, Any, MessageHeaders | None] | None:
        """Convert a record to key, value and headers, None when it is left out."""
        take, converters = self._parts.steps.take, self._parts.converters
        headers: Any = ()
        if record.headers:
            headers = take(
                Stage.HEADER_CONVERTER, type(converters.header), polled, self._headers, record
            )
        key = take(
            Stage.KEY_CONVERTER,
            type(converters.key),
            polled,
            converters.key.from_connect_data,
            record.topic,
            record.key_schema,
            record.key,
            record.headers,
        )
        value = take(
            Stage.VALUE_CONVERTER,
            type(converters.value),
            polled,
            converters.value.from_connect_data,
            record.topic,
            record.value_schema,
            record.value,
            record.headers,
        )
        if headers is SKIPPED or key is SKIPPED or value is SKIPPED:
            return None
        return key, value, headers or None

    def _headers(self, record: SourceRecord) -> MessageHeaders:
        convert = self._parts.converters.header.from_connect_header
        for each in record.headers:
            # It ends the process at a text that is no Unicode, and ends a text at a zero byte.
            if "\0" in each.key or not is_unicode(each.key):
                raise DataException(
                    f"{each.key!a}: a header's name is no text that Kafka's client takes"
                )
        return [
            (each.key, convert(record.topic, each.key, each.schema, each.value))
            for each in record.headers
        ]


def key_of(partition: SourcePartition) -> str:
    """Return the same text for equal source partitions."""
    return repr(sorted(partition.items()))
