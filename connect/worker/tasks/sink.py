"""A sink task: consume, convert, transform, put, and commit the offsets that the task returns.

An offset is committed only when `pre_commit` returned it, and never for a record that was not put.
When a `put` raises RetriableException, the same records are put again, and the consumer fetches
nothing until that succeeds.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from common.process import traces
from common.process.clock import now_ms, timestamp_ns
from connect.errors.tolerance import Stage
from connect.worker.record_plugins import Converters, TransformationStage
from connect.worker.tasks.departures import SinkMembership
from connect.worker.tasks.reporting import SinkReport, timestamp_type
from connect.worker.tasks.sink_context import SinkContext
from connect.worker.tasks.spans import tell_put
from connect.worker.tasks.steps import SKIPPED, Steps
from connect.worker.tasks.subscription import Subscription
from connect.worker.tasks.thread import TaskCounts, TaskThread
from millstream.connect.connectors import SinkTask, TopicPartition
from millstream.connect.data.records import NO_HEADERS, Header, Headers, SinkRecord
from millstream.connect.errors import ConnectException, RetriableException

log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.2
_HELD_SECONDS: Final = 0.5
_TOPIC_REMINDER_MS: Final = 1_000
_LOOK_MS: Final = 1_000


class SinkWork:
    """Owns the consumer, the current batch and the offsets. All of it lives in one thread.

    Invariant: `_put_offsets` of a partition is the offset after the last record that was put.
    `_committed` is ahead of it only when the task itself has rewound the partition.
    """

    def __init__(
        self,
        thread: TaskThread,
        counts: TaskCounts,
        *,
        task: SinkTask,
        config: Mapping[str, str],
        subscription: Subscription,
        stages: list[TransformationStage],
        converters: Converters,
        steps: Steps,
        report: SinkReport,
        consumer: dict[str, Any],
        dead_letter_clients: tuple[dict[str, Any], dict[str, Any]],
        max_poll_records: int,
        flush_interval_ms: int,
    ) -> None:
        """`consumer` and `dead_letter_clients` are settings of librdkafka."""
        self.counts = counts
        self._thread = thread
        self._control = thread.control
        self._call = thread.caller
        self._task = task
        self._config = config
        self._subscription = subscription
        self._stages = stages
        self._converters = converters
        self._steps = steps
        self._report = report
        self._consumer_settings = consumer
        self._dead_letter_clients = dead_letter_clients
        self._max_poll_records = max_poll_records
        self._flush_interval_ms = flush_interval_ms
        self._consumer: Consumer | None = None
        self._membership: SinkMembership | None = None
        self._context = SinkContext(config, steps, report)
        self._put_offsets: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._batch: list[SinkRecord] = []
        self._read_offsets: dict[TopicPartition, int] = {}
        """The offset after the current batch's last record, including records left out."""
        self._is_redelivering = False
        # A request to resume may come before the first look at the control: report it as well.
        self._is_held = thread.control.began_paused
        self._is_started = False
        self._is_stopped = False
        self._rebalance_error: BaseException | None = None
        self._next_commit_ms = 0
        self._next_look_ms = 0
        self._topic_seen_ms: dict[str, int] = {}
        self._seen_topic: str | None = None
        """The topic of the last record of this batch."""
        self._keeps_messages = report.takes_single_records
        self._is_incremental = is_incremental(consumer)

    # --- its life ---

    def begin(self) -> str:
        self._report.start(*self._dead_letter_clients)
        told = self._consumer_settings
        self._consumer = Consumer(told)
        self._membership = SinkMembership(self._consumer, told, self._thread.member_left)
        self._task.context = self._context
        self._is_started = True
        self._call(self._task.start, dict(self._config))
        self._subscription.start(self._subscribe)
        self._next_commit_ms = now_ms() + self._flush_interval_ms
        return type(self._task).version()

    def _subscribe(self, topics: list[str]) -> None:
        assert self._consumer is not None
        told = {"on_assign": self._assigned, "on_revoke": self._revoked, "on_lost": self._lost}
        self._consumer.subscribe(topics, **told)

    def go_on(self) -> None:
        assert self._consumer is not None
        try:
            while not self._control.is_stopping:
                self._subscription.look(self._consumer, self._subscribe, now_ms())
                self._iterate()
        finally:
            self._close_partitions(list(self._context.assigned))

    def end(self) -> None:
        self._stop_task()
        if self._membership is not None:
            self._membership.close()
        for stage in self._stages:
            stage.transformation.close()

    def interrupt(self) -> None:
        """Does nothing: a running `put` may take until the task is left behind."""

    def _stop_task(self) -> None:
        if self._is_started and not self._is_stopped:
            self._is_stopped = True
            self._call(self._task.stop)

    # --- one turn ---

    def _iterate(self) -> None:
        if self._control.is_paused is not self._is_held:
            self._hold(self._control.is_paused)
        is_due = self._context.is_commit_requested or self._report.is_full
        if is_due or now_ms() >= self._next_commit_ms:
            self._context.is_commit_requested = False
            self._next_commit_ms = now_ms() + self._flush_interval_ms
            self._commit(list(self._context.assigned))
        self._rewind()
        self._read(self._fetch())
        if self._batch or self._context.assigned:
            self._deliver()
        if now_ms() >= self._next_look_ms:
            self._next_look_ms = now_ms() + _LOOK_MS
            self._look()

    def _look(self) -> None:
        """Do what is done once a second."""
        assert self._membership is not None
        self._membership.look()
        self.counts.record_lag = self._lag()
        self._thread.take_note(self._task.note() or self._subscription.note())

    def _hold(self, is_held: bool) -> None:
        self._is_held = is_held
        self._pause_or_resume()
        if is_held:
            self._context.is_commit_requested = True
        self._thread.held(is_held)

    def _pause_or_resume(self) -> None:
        """Pause fetching from all partitions, or from those that the task has paused."""
        assert self._consumer is not None
        assigned = self._context.assigned
        is_none = self._is_held or self._is_redelivering
        paused = assigned if is_none else assigned & self._context.paused
        self._consumer.pause(_natives(paused))
        self._consumer.resume(_natives(assigned - paused))
        self._context.is_pausing_changed = False

    def _fetch(self) -> list[Message]:
        assert self._consumer is not None
        if self._context.is_pausing_changed:
            self._pause_or_resume()
        seconds = _HELD_SECONDS if self._is_held or self._is_redelivering else _POLL_SECONDS
        until_commit = max(0, self._next_commit_ms - now_ms()) / 1000
        asked = self._context.take_timeout_ms()
        if asked is not None:
            seconds = min(60.0, asked / 1000)
        messages = self._consumer.consume(self._max_poll_records, min(seconds, until_commit))
        if self._rebalance_error is not None:
            error, self._rebalance_error = self._rebalance_error, None
            raise error
        return messages

    # --- reading ---

    def _read(self, messages: Iterable[Message]) -> None:
        """Convert messages. Neighbours are mostly of one partition, which is looked up once."""
        at: TopicPartition | None = None
        is_assigned = False
        self._seen_topic = None
        for message in messages:
            error = message.error()
            if error is None:
                topic, partition = message.topic(), message.partition()
                assert topic is not None
                assert partition is not None
                if at is None or partition != at.partition or topic != at.topic:
                    at = TopicPartition(topic, partition)
                    is_assigned = at in self._context.assigned
                if is_assigned:
                    self._read_one(message, at)
            elif error.code() == KafkaError._MAX_POLL_EXCEEDED or error.retriable():  # noqa: SLF001
                log.warning("consumer says task=%s error=%s", self._thread.task, error)
            elif error.code() in _WAITED_FOR:
                log.info("topic is waited for task=%s error=%s", self._thread.task, error)
            else:
                raise KafkaException(error)

    def _read_one(self, message: Message, at: TopicPartition) -> None:
        offset = message.offset()
        assert offset is not None
        self.counts.sink_record_read_total += 1
        self._committed.setdefault(at, offset)
        if self._keeps_messages:
            self._report.consumed(at, message)
        record = self._converted(message, at.topic, at.partition, offset)
        self._read_offsets[at] = offset + 1
        if record is not None:
            self._batch.append(record)

    def _converted(
        self, message: Message, topic: str, partition: int, offset: int
    ) -> SinkRecord | None:
        raw: Any = message.headers() or ()
        bare = Headers(Header(name, value) for name, value in raw) if raw else NO_HEADERS
        steps, converters = self._steps, self._converters
        of_key, of_value = converters.key.to_connect_data, converters.value.to_connect_data
        # `steps.take` would be called twice for each record, and costs a tenth of it.
        try:
            key: Any = of_key(topic, message.key(), bare)
        except Exception as error:  # noqa: BLE001 - `after` decides
            stage, of = Stage.KEY_CONVERTER, type(converters.key)
            key = steps.after(error, stage, of, message, of_key, topic, message.key(), bare)
        try:
            value: Any = of_value(topic, message.value(), bare)
        except Exception as error:  # noqa: BLE001 - as above
            stage, of = Stage.VALUE_CONVERTER, type(converters.value)
            value = steps.after(error, stage, of, message, of_value, topic, message.value(), bare)
        headers: Any = bare
        if raw:
            headers = steps.take(
                Stage.HEADER_CONVERTER, type(converters.header), message, self._headers, topic, raw
            )
        if key is SKIPPED or value is SKIPPED or headers is SKIPPED:
            return None
        kind, timestamp = message.timestamp()
        record = SinkRecord(
            topic=topic,
            kafka_partition=partition,
            key_schema=key.schema,
            key=key.value,
            value_schema=value.schema,
            value=value.value,
            kafka_offset=offset,
            timestamp_ms=timestamp if timestamp >= 0 else None,
            timestamp_type=timestamp_type(kind),
            headers=headers,
            original_topic=topic,
            original_kafka_partition=partition,
            original_kafka_offset=offset,
        )
        if topic != self._seen_topic:
            self._track(topic)
        transformed = steps.transform(self._stages, record, message)
        return None if transformed is SKIPPED else transformed

    def _headers(self, topic: str, raw: Sequence[tuple[str, bytes | None]]) -> Headers:
        convert = self._converters.header.to_connect_header
        found = [(name, convert(topic, name, value)) for name, value in raw]
        return Headers(Header(name, each.value, each.schema) for name, each in found)

    def _track(self, topic: str) -> None:
        self._seen_topic = topic
        if self._topic_seen_ms.get(topic, -_TOPIC_REMINDER_MS) + _TOPIC_REMINDER_MS <= now_ms():
            self._topic_seen_ms[topic] = now_ms()
            self._thread.topic_used(topic)

    # --- writing ---

    def _deliver(self) -> None:
        begun_ns = timestamp_ns()
        try:
            self._call(self._task.put, list(self._batch))
            self._report.raise_problem()
        except RetriableException as error:
            said = self._thread.concealing.text(f"{type(error).__name__}: {error}")
            log.warning("put is tried again task=%s error=%s", self._thread.task, said)
            if not self._is_redelivering:
                self._is_redelivering = True
                self._pause_or_resume()
            return
        except Exception as error:
            raise ConnectException(
                "Exiting WorkerSinkTask due to unrecoverable exception."
            ) from error
        self.counts.sink_record_send_total += len(self._batch)
        if traces.recorder is not None:
            tell_put(traces.recorder, self._thread.task.connector, self._batch, begun_ns)
        self._put_offsets.update(self._read_offsets)
        self._batch.clear()
        self._read_offsets.clear()
        if self._is_redelivering:
            self._is_redelivering = False
            self._pause_or_resume()

    def _rewind(self) -> None:
        """Seek to the offsets that the task asked for."""
        assert self._consumer is not None
        for at, offset in self._context.take_rewinds().items():
            if at in self._context.assigned:
                self._consumer.seek(_native(at, offset))
                self._put_offsets[at] = self._committed[at] = offset
                self._forget(at)

    def _forget(self, at: TopicPartition) -> None:
        """Drop the records of a partition that were read but not put."""
        self._read_offsets.pop(at, None)
        self._batch = [each for each in self._batch if _place(each) != at]

    def _lag(self) -> int | None:
        """Return how many records are left to put, by the high watermarks of the last fetches."""
        assert self._consumer is not None
        found = []
        for at in self._context.assigned:
            done = self._put_offsets.get(at, self._committed.get(at))
            try:
                _, end = self._consumer.get_watermark_offsets(_native(at, 0), cached=True)
            except KafkaException:
                # The client has no metadata of the partition yet.
                continue
            if end < 0:
                continue
            # Without a record yet, the partition is read to its end or a fetch is on its way.
            found.append(0 if done is None else max(0, end - done))
        return sum(found) if found else None

    # --- offsets ---

    def _commit(self, partitions: Sequence[TopicPartition], *, is_closing: bool = False) -> None:
        if self._thread.is_left:
            return
        offsets = {at: self._put_offsets[at] for at in partitions if at in self._put_offsets}
        try:
            self._report.flush()
            given = self._call(self._task.pre_commit, dict(offsets)) if offsets else {}
        # Logged and ignored, as in Kafka Connect: unflushed records are read again.
        except Exception as error:  # noqa: BLE001
            self.counts.offset_commit_failure_total += 1
            trace = self._thread.concealing.trace(error)
            log.error("offsets are not committed task=%s\n%s", self._thread.task, trace)
            if not is_closing:
                self._go_back(offsets)
            return
        self._commit_given(given or {}, offsets)

    def _commit_given(
        self, given: Mapping[TopicPartition, int], offsets: Mapping[TopicPartition, int]
    ) -> None:
        wanted = {}
        for at, offset in given.items():
            if at not in offsets or offset > offsets[at]:
                log.warning(
                    "task gives an offset it was not asked for task=%s partition=%s offset=%s",
                    self._thread.task,
                    at,
                    offset,
                )
            elif self._committed.get(at) != offset:
                wanted[at] = offset
        if not wanted:
            return
        assert self._consumer is not None
        try:
            self._consumer.commit(
                offsets=[_native(at, offset) for at, offset in wanted.items()], asynchronous=False
            )
        except KafkaException as error:
            self.counts.offset_commit_failure_total += 1
            log.error("commit failed task=%s error=%s", self._thread.task, error)
            return
        self.counts.offset_commit_completion_total += 1
        self._committed.update(wanted)
        self._report.committed(wanted)

    def _go_back(self, offsets: Iterable[TopicPartition]) -> None:
        assert self._consumer is not None
        for at in offsets:
            if at in self._committed:
                self._consumer.seek(_native(at, self._committed[at]))
                self._put_offsets[at] = self._committed[at]
                self._forget(at)

    # --- partitions that come and go ---

    def _assigned(self, consumer: Consumer, natives: list[confluent_kafka.TopicPartition]) -> None:
        partitions = [TopicPartition(each.topic, each.partition) for each in natives]
        log.info("partitions assigned task=%s partitions=%s", self._thread.task, partitions)
        try:
            # Assign here and not after this call, so that the task can pause or rewind at once.
            if self._is_incremental:
                consumer.incremental_assign(natives)
            else:
                consumer.assign(natives)
            self._context.assigned |= frozenset(partitions)
            self.counts.partition_count = len(self._context.assigned)
            self._pause_or_resume()
            if partitions:
                self._call(self._task.open, partitions)
        # The C library would lose the exception: `_fetch` raises it.
        except BaseException as error:  # noqa: BLE001
            self._rebalance_error = error

    def _revoked(self, _: Consumer, natives: list[confluent_kafka.TopicPartition]) -> None:
        partitions = [TopicPartition(each.topic, each.partition) for each in natives]
        log.info("partitions revoked task=%s partitions=%s", self._thread.task, partitions)
        self._close_partitions(partitions)

    def _lost(self, _: Consumer, natives: list[confluent_kafka.TopicPartition]) -> None:
        partitions = [TopicPartition(each.topic, each.partition) for each in natives]
        log.warning("partitions lost task=%s partitions=%s", self._thread.task, partitions)
        self._close_partitions(partitions, is_lost=True)

    def _close_partitions(self, partitions: list[TopicPartition], *, is_lost: bool = False) -> None:
        partitions = [at for at in partitions if at in self._context.assigned]
        if not partitions:
            return
        try:
            if not is_lost:
                self._commit(partitions, is_closing=True)
            self._call(self._task.close, partitions)
        # As above.
        except BaseException as error:  # noqa: BLE001
            trace = self._thread.concealing.trace(error)
            log.error("partitions were not closed cleanly task=%s\n%s", self._thread.task, trace)
            self._rebalance_error = error
        for at in partitions:
            self._put_offsets.pop(at, None)
            self._committed.pop(at, None)
            self._forget(at)
        self._context.lose(partitions)
        self._report.lost(partitions)
        self.counts.partition_count = len(self._context.assigned)
        if self._is_redelivering and not self._batch:
            self._is_redelivering = False
            self._context.is_pausing_changed = True


_WAITED_FOR: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._PARTITION_EOF,  # noqa: SLF001 - librdkafka's own codes
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
}


def is_incremental(consumer: Mapping[str, Any]) -> bool:
    """Return whether a consumer with these settings is given partitions beside those it has."""
    is_cooperative = consumer.get("partition.assignment.strategy") == "cooperative-sticky"
    return is_cooperative or consumer.get("group.protocol", "").lower() == "consumer"


def _place(record: SinkRecord) -> TopicPartition:
    return TopicPartition(record.original_topic, record.original_kafka_partition)


def _native(at: TopicPartition, offset: int) -> confluent_kafka.TopicPartition:
    return confluent_kafka.TopicPartition(at.topic, at.partition, offset)


def _natives(partitions: Iterable[TopicPartition]) -> list[confluent_kafka.TopicPartition]:
    return [confluent_kafka.TopicPartition(*each) for each in sorted(partitions)]
