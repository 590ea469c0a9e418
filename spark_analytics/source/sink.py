"""The sink: rows become records, at least once.

The columns are those of Spark's Kafka connector: `value` (string or binary, required), `key`,
`topic` (or the option of that name, which wins), `headers` (array of key and value), `partition`. A
task ends when all its records are acknowledged by the whole ISR; a task that Spark repeats writes
its records again. Within a task the idempotent producer prevents duplicates and reordering.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    VarcharType,
)

from spark_analytics.source.kafka_client import quiet
from spark_analytics.source.options import OptionError, SinkOptions

SINK_SETTINGS = {
    "linger.ms": "20",
    "batch.num.messages": "10000",
    "queue.buffering.max.messages": "100000",
    "queue.buffering.max.kbytes": "65536",
}
FIXED_SETTINGS = {"enable.idempotence": "true", "acks": "all"}
_FLUSH_SECONDS = 1.0
_TEXT_OR_BYTES = (StringType, VarcharType, BinaryType)
_COLUMNS: dict[str, tuple[type[DataType], ...]] = {
    "key": _TEXT_OR_BYTES,
    "value": _TEXT_OR_BYTES,
    "topic": (StringType, VarcharType),
    "partition": (IntegerType,),
    "headers": (ArrayType,),
}
_producers: dict[tuple[tuple[str, str], ...], Producer] = {}


class WriteError(RuntimeError):
    """A record was refused, or not acknowledged in time."""


@dataclass(frozen=True, slots=True)
class WrittenRecords(WriterCommitMessage):
    """The count of records that a task wrote."""

    count: int


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Raise OptionError unless rows of this schema can be written."""
    kinds = {entry.name: entry.dataType for entry in schema.fields}
    if "value" not in kinds:
        raise OptionError("the sink needs a column `value`")
    if options.topic is None and "topic" not in kinds:
        raise OptionError("the sink needs the option `topic` or a column of that name")
    for name, kind in kinds.items():
        allowed = _COLUMNS.get(name)
        if allowed is None:
            raise OptionError(f"the sink has no use for column `{name}`")
        if not isinstance(kind, allowed):
            raise OptionError(f"column `{name}` cannot be {kind.simpleString()}")


class MillstreamWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows, in a worker."""
        return WrittenRecords(write_batches(self._options, iterator))


class MillstreamStreamWriter(DataSourceStreamArrowWriter):
    """Writes the rows of a streaming query."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows, in a worker."""
        return WrittenRecords(write_batches(self._options, iterator))


def write_batches(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> int:
    """Write rows and wait until all are acknowledged; return their count."""
    delivery = _Delivery(_producer(options.client))
    for batch in batches:
        for row in rows_of(batch, options.topic):
            delivery.send(row)
    return delivery.finish()


def rows_of(batch: pa.RecordBatch, topic: str | None) -> Iterator[dict[str, Any]]:
    """Yield the producer's arguments for each row."""
    names = batch.schema.names
    columns = [column.to_pylist() for column in batch.columns]
    for values in zip(*columns, strict=True):
        row = dict(zip(names, values, strict=True))
        row["topic"] = topic or row.get("topic")
        if row["topic"] is None:
            raise WriteError("a row has no topic: the column is null and the option not given")
        if row.get("headers") is not None:
            row["headers"] = [(header["key"], header["value"]) for header in row["headers"]]
        yield {name: value for name, value in row.items() if value is not None}


class _Delivery:
    """The outstanding records of a task. It raises WriteError for the first failed one."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._sent = 0
        self._acknowledged = 0
        self._refusal: KafkaError | None = None

    def send(self, row: Mapping[str, Any]) -> None:
        while True:
            try:
                self._producer.produce(**row, on_delivery=self._delivered)
                break
            except BufferError:
                self._producer.poll(_FLUSH_SECONDS)
                self._check()
        self._sent += 1
        if self._sent % 1000 == 0:
            self._producer.poll(0)
            self._check()

    def finish(self) -> int:
        # This ends: librdkafka reports a record as failed after delivery.timeout.ms.
        while self._acknowledged < self._sent:
            self._producer.flush(_FLUSH_SECONDS)
            self._check()
        return self._sent

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._refusal = self._refusal or error
        else:
            self._acknowledged += 1

    def _check(self) -> None:
        if self._refusal is not None:
            # The queued records belong to this task alone, and the task has failed.
            self._producer.purge()
            _producers.clear()
            raise WriteError(f"a record was not written: {self._refusal}") from KafkaException(
                self._refusal
            )


def _producer(client: Mapping[str, str]) -> Producer:
    key = tuple(sorted(client.items()))
    if key not in _producers:
        _producers[key] = Producer({**SINK_SETTINGS, **quiet(client), **FIXED_SETTINGS})
    return _producers[key]
