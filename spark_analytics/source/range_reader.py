"""The reader of a task's ranges, in a Python worker of Spark: one consumer for one range or many.

A worker keeps its consumer between tasks. After a large task it stays positioned after the last
record: if the next task continues there, it uses the prefetched records. After a small task there
is nothing to prefetch, and the consumer sends no fetches. For one range the reader takes no more
records from the consumer than it needs. With several ranges one may end before the others: its
further records are kept for the next task.

A range may have fewer records than offsets (compaction, markers of transactions, aborted records).
It ends with a record at or after its end, or with the end of the partition.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from common.process import clock
from spark_analytics.source.kafka_client import is_absent, is_passing, quiet
from spark_analytics.source.offsets import OffsetRange, Offsets, TopicPartition
from spark_analytics.source.planner import report_loss
from spark_analytics.source.records import record_batch

# Small enough for the messages to stay in the CPU's cache, large enough to spread the fixed cost of
# a batch; 10,000 cost a tenth more a row.
BATCH_ROWS = 2_000
# A task of fewer records has caught up: fetches for more would cost the brokers and this process
# fifty requests a second without a result.
_READ_AHEAD_RECORDS = 2_000
_HELD_BYTES = 16 * 1024 * 1024
_WAIT_SECONDS = 0.5
_WATERMARK_SECONDS = 10.0
# librdkafka's own error codes, with these names in Python.
END_OF_PARTITION = KafkaError._PARTITION_EOF  # noqa: SLF001
OUT_OF_RANGE = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}  # noqa: SLF001
EXPECTED = {END_OF_PARTITION, *OUT_OF_RANGE}

READER_SETTINGS = {
    # The Java client's default; librdkafka's would hide records of open transactions.
    "isolation.level": "read_uncommitted",
    "group.id": "millstream-spark-source",
    # The maximum of prefetched records in a consumer between two tasks.
    "queued.max.messages.kbytes": "16384",
    "queued.min.messages": "100000",
    # The pause of fetches after a full queue; with the default of a second the task would wait.
    "fetch.queue.backoff.ms": "5",
    "fetch.wait.max.ms": "100",
    "fetch.error.backoff.ms": "100",
    "topic.metadata.refresh.interval.ms": "30000",
}
FIXED_SETTINGS = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "allow.auto.create.topics": "false",
}


@dataclass(slots=True)
class IdleConsumer:
    """A consumer between two tasks.

    `positions` are the next offsets of its partitions, empty if it needs a new assignment; `held`
    are records at and after those offsets that were already taken from the consumer.
    """

    consumer: Consumer
    positions: Offsets = field(default_factory=dict)
    held: list[Message] = field(default_factory=list)


_idle: dict[tuple[tuple[str, str], ...], IdleConsumer] = {}


@dataclass(frozen=True, slots=True)
class RangeReader:
    """The settings of a range reader, which Spark pickles for its workers."""

    client: Mapping[str, str]
    fail_on_data_loss: bool
    include_headers: bool
    poll_timeout_ms: int

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[pa.RecordBatch]:
        """Yield the records of a task's ranges as Arrow batches."""
        settings = tuple(sorted(self.client.items()))
        # Removed from the cache while in use: a worker may run two tasks in threads.
        idle = _idle.pop(settings, None) or IdleConsumer(_new_consumer(self.client))
        reading = _Reading(self, idle, ranges)
        # Thousands of short-lived messages keep the garbage collector busy, although they are in no
        # cycle. Without it a row takes two thirds of the time.
        was_collecting = gc.isenabled()
        gc.disable()
        try:
            yield from reading.batches()
        except BaseException:
            idle.positions = {}
            raise
        finally:
            if was_collecting:
                gc.enable()
            _keep(settings, idle)


class _Reading:
    """One pass over some ranges. Invariant: all records before `self._next` were yielded."""

    def __init__(
        self, reader: RangeReader, idle: IdleConsumer, ranges: Sequence[OffsetRange]
    ) -> None:
        self._reader = reader
        self._idle = idle
        self._next: Offsets = {(item.topic, item.partition): item.start_offset for item in ranges}
        self._ends: Offsets = {(item.topic, item.partition): item.end_offset for item in ranges}
        self._held_bytes = 0
        self._is_small = sum(item.size for item in ranges) < _READ_AHEAD_RECORDS
        self._last_progress = clock.now_seconds()

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self._idle.positions != self._next:
            self._assign()
        messages, self._idle.held = self._idle.held, []
        while True:
            records = self._records_of(messages)
            if records:
                yield record_batch(
                    records,
                    include_headers=self._reader.include_headers,
                    is_one_partition=len(self._ends) == 1,
                )
            left = self._left()
            if not left:
                break
            messages = self._idle.consumer.consume(min(left, BATCH_ROWS), _WAIT_SECONDS)
        if self._is_small:
            self._idle.consumer.unassign()
        is_positioned = not self._is_small and self._held_bytes <= _HELD_BYTES
        self._idle.positions = self._next if is_positioned else {}

    def _left(self) -> int:
        return sum(max(end - self._next[key], 0) for key, end in self._ends.items())

    def _records_of(self, messages: list[Message]) -> list[Message]:
        """Return the messages within the ranges, and advance the positions."""
        before = self._left()
        records = messages if self._is_plain(messages) else self._within(messages)
        if self._left() < before:
            self._last_progress = clock.now_seconds()
        else:
            self._complain_of_standstill()
        return records

    def _is_plain(self, messages: list[Message]) -> bool:
        """Return True if all messages are the next records of one range; advance its position.

        In large reads nearly all calls return True, so no record is checked by itself.
        """
        if len(self._ends) > 1 or not messages or any(message.error() for message in messages):
            return False
        [(key, end)] = self._ends.items()
        first, last = _place_of(messages[0])[1], _place_of(messages[-1])[1]
        if not self._next[key] <= first <= last < end:
            return False
        self._next[key] = last + 1
        return True

    def _within(self, messages: list[Message]) -> list[Message]:
        """Return the records within their ranges; hold those after them."""
        found = []
        for message in messages:
            error = message.error()
            if error is not None:
                self._handle(message, error)
                continue
            key, offset = _place_of(message)
            if self._next[key] <= offset < self._ends[key]:
                self._next[key] = offset + 1
                found.append(message)
            elif offset >= self._ends[key]:
                self._next[key] = self._ends[key]
                self._hold(message)
            # Otherwise it is a duplicate: a new assignment resets all partitions a little.
        return found

    def _hold(self, record: Message) -> None:
        self._held_bytes += len(record.value() or b"") + len(record.key() or b"")
        if self._held_bytes > _HELD_BYTES:
            self._idle.held.clear()
        else:
            self._idle.held.append(record)

    def _handle(self, message: Message, error: KafkaError) -> None:
        if error.fatal() or not (error.code() in EXPECTED or is_absent(error) or is_passing(error)):
            raise KafkaException(error)
        if message.topic() is None:
            return  # an error of a broker, not of a partition
        key, offset = _place_of(message)
        if error.code() == END_OF_PARTITION:
            self._next[key] = max(self._next[key], min(offset, self._ends[key]))
        elif error.code() in OUT_OF_RANGE:
            self._lose(f"offset {self._next[key]} of {_name(key)} is gone")
            self._skip_to_what_is_left(key)
        elif is_absent(error):
            self._lose(f"{_name(key)} is gone")
            self._next[key] = self._ends[key]

    def _skip_to_what_is_left(self, key: TopicPartition) -> None:
        low, high = self._idle.consumer.get_watermark_offsets(
            Place(*key), timeout=_WATERMARK_SECONDS
        )
        if self._next[key] < low < self._ends[key]:
            self._next[key] = low
        elif not low <= self._next[key] < high:
            self._next[key] = self._ends[key]
        self._assign()

    def _assign(self) -> None:
        self._idle.held = []
        self._idle.consumer.assign([Place(*key, offset) for key, offset in self._next.items()])

    def _lose(self, what: str) -> None:
        report_loss(what, fail=self._reader.fail_on_data_loss)

    def _complain_of_standstill(self) -> None:
        waited_ms = (clock.now_seconds() - self._last_progress) * 1000
        if waited_ms > self._reader.poll_timeout_ms:
            missing = [key for key, end in self._ends.items() if self._next[key] < end]
            places = ", ".join(f"{_name(key)} at offset {self._next[key]}" for key in missing)
            raise TimeoutError(f"no record of {places} for {waited_ms:.0f} ms")


def _place_of(message: Message) -> tuple[TopicPartition, int]:
    """Return the partition and the offset of a message."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return (topic, partition), offset


def _name(key: TopicPartition) -> str:
    return f"{key[0]}-{key[1]}"


def _new_consumer(client: Mapping[str, str]) -> Consumer:
    settings: dict[str, Any] = {**READER_SETTINGS, **quiet(client), **FIXED_SETTINGS}
    return Consumer(settings)


def _keep(settings: tuple[tuple[str, str], ...], idle: IdleConsumer) -> None:
    if settings in _idle:
        idle.consumer.close()
    else:
        _idle[settings] = idle
