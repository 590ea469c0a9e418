"""Read one range of one partition, in a Python worker of Spark.

A worker keeps its consumer between tasks, positioned behind what it read last: when its next task
goes on from there, what was fetched ahead is used. Never more is taken out of the consumer than the
range needs, so nothing is lost by stopping at its end.

A range may hold fewer records than offsets (compaction, markers of transactions, aborted records).
Its end is reached when a record at or behind it is seen, or the end of the partition is.
"""

import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from spark_analytics import clock
from spark_analytics.source.kafka_client import is_absent, is_passing, quiet
from spark_analytics.source.offsets import OffsetRange
from spark_analytics.source.planner import report_loss
from spark_analytics.source.records import record_batch

# Small enough for the messages to stay in the processor's cache, large enough to spread the fixed
# cost of a batch; 10,000 cost a tenth more a row (bench/README.md).
BATCH_ROWS = 2_000
_WAIT_SECONDS = 0.5
_WATERMARK_SECONDS = 10.0
# librdkafka's own codes; it gives them these names in Python.
END_OF_PARTITION = KafkaError._PARTITION_EOF  # noqa: SLF001
OUT_OF_RANGE = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}  # noqa: SLF001

READER_SETTINGS = {
    # The Java client's default; librdkafka's would hide records of open transactions.
    "isolation.level": "read_uncommitted",
    "group.id": "millrace-spark-source",
    # A consumer that waits for its next task holds at most this much.
    "queued.max.messages.kbytes": "16384",
    "queued.min.messages": "100000",
    # A full queue is looked at again after this; the default of a second leaves the task waiting.
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
Position = tuple[str, int, int]


@dataclass(slots=True)
class IdleConsumer:
    """A consumer between two tasks, and the topic, partition and offset it stands at."""

    consumer: Consumer
    position: Position | None


_idle: dict[tuple[tuple[str, str], ...], IdleConsumer] = {}


@dataclass(frozen=True, slots=True)
class RangeReader:
    """How ranges are read; goes to the workers pickled, so it holds settings only."""

    client: Mapping[str, str]
    fail_on_data_loss: bool
    include_headers: bool
    poll_timeout_ms: int

    def read(self, item: OffsetRange) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range as Arrow batches."""
        settings = tuple(sorted(self.client.items()))
        # Taken out of the cache while in use: a worker may run two tasks in threads.
        idle = _idle.pop(settings, None) or IdleConsumer(_new_consumer(self.client), None)
        reading = _Reading(self, idle, item)
        # Thousands of short-lived messages make the collector run all the time, for nothing: they
        # are in no cycle. Without it a row costs two thirds.
        was_collecting = gc.isenabled()
        gc.disable()
        try:
            yield from reading.batches()
        except BaseException:
            idle.position = None
            raise
        finally:
            if was_collecting:
                gc.enable()
            _keep(settings, idle)


class _Reading:
    """One pass over a range. Invariant: what lies before `self._next_offset` was handed out."""

    def __init__(self, reader: RangeReader, idle: IdleConsumer, item: OffsetRange) -> None:
        self._reader = reader
        self._idle = idle
        self._range = item
        self._next_offset = item.start_offset
        self._last_progress = clock.now_seconds()

    def batches(self) -> Iterator[pa.RecordBatch]:
        behind_last = (self._range.topic, self._range.partition, self._range.start_offset)
        if self._idle.position != behind_last:
            self._seek(self._range.start_offset)
        while (left := self._range.end_offset - self._next_offset) > 0:
            messages = self._idle.consumer.consume(min(left, BATCH_ROWS), _WAIT_SECONDS)
            records = self._records_of(messages)
            if records:
                yield record_batch(records, include_headers=self._reader.include_headers)
        # A gap may have led beyond the end: then a record of the next range was taken out too.
        self._idle.position = (self._range.topic, self._range.partition, self._next_offset)

    def _records_of(self, messages: list[Message]) -> list[Message]:
        """Pick the records of the range and move on behind them."""
        before = self._next_offset
        records = [message for message in messages if message.error() is None]
        if len(records) < len(messages):
            for message in messages:
                if message.error() is not None:
                    self._handle(message.error(), message.offset())
        if records:
            self._next_offset = max(self._next_offset, records[-1].offset() + 1)
        if self._next_offset == before:
            self._complain_of_standstill()
            return []
        self._last_progress = clock.now_seconds()
        if self._next_offset <= self._range.end_offset:
            return records
        return [record for record in records if record.offset() < self._range.end_offset]

    def _handle(self, error: KafkaError, offset: int) -> None:
        if error.code() == END_OF_PARTITION:
            self._next_offset = max(self._next_offset, offset)
        elif error.code() in OUT_OF_RANGE:
            self._lose(f"offset {self._next_offset} of {self._place()} is gone")
            self._skip_to_what_is_left()
        elif is_absent(error):
            self._lose(f"{self._place()} is gone")
            self._next_offset = self._range.end_offset
        elif error.fatal() or not is_passing(error):
            raise KafkaException(error)

    def _skip_to_what_is_left(self) -> None:
        place = Place(self._range.topic, self._range.partition)
        low, high = self._idle.consumer.get_watermark_offsets(place, timeout=_WATERMARK_SECONDS)
        if self._next_offset < low < self._range.end_offset:
            self._next_offset = low
        elif not low <= self._next_offset < high:
            self._next_offset = self._range.end_offset
        self._seek(self._next_offset)

    def _seek(self, offset: int) -> None:
        self._idle.consumer.assign([Place(self._range.topic, self._range.partition, offset)])

    def _lose(self, what: str) -> None:
        report_loss(what, fail=self._reader.fail_on_data_loss)

    def _complain_of_standstill(self) -> None:
        waited_ms = (clock.now_seconds() - self._last_progress) * 1000
        if waited_ms > self._reader.poll_timeout_ms:
            raise TimeoutError(
                f"no record of {self._place()} at offset {self._next_offset} for {waited_ms:.0f} ms"
            )

    def _place(self) -> str:
        return f"{self._range.topic}-{self._range.partition}"


def _new_consumer(client: Mapping[str, str]) -> Consumer:
    settings: dict[str, Any] = {**READER_SETTINGS, **quiet(client), **FIXED_SETTINGS}
    return Consumer(settings)


def _keep(settings: tuple[tuple[str, str], ...], idle: IdleConsumer) -> None:
    if settings in _idle:
        idle.consumer.close()
    else:
        _idle[settings] = idle
