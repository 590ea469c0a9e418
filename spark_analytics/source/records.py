"""Records as Arrow columns: the schema of Spark's Kafka connector, built column by column.

The construction of columns from lists is the source's own cost of a record, so there is no step
between: one list a column, from librdkafka's messages to Arrow.
"""

from collections.abc import Sequence

import pyarrow as pa
from confluent_kafka import Message
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
SCHEMA = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
SCHEMA_WITH_HEADERS = StructType([*SCHEMA.fields, StructField("headers", HEADERS)])

ARROW_SCHEMA = to_arrow_schema(SCHEMA, timezone="UTC")
ARROW_SCHEMA_WITH_HEADERS = to_arrow_schema(SCHEMA_WITH_HEADERS, timezone="UTC")
_MICROSECONDS = 1000


def record_batch(
    messages: Sequence[Message], *, include_headers: bool, is_one_partition: bool = True
) -> pa.RecordBatch:
    """Return one Arrow batch of at least one message."""
    schema = ARROW_SCHEMA_WITH_HEADERS if include_headers else ARROW_SCHEMA
    times = [message.timestamp() for message in messages]
    columns = [
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
        *_places(messages, is_one_partition=is_one_partition),
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array([time[1] * _MICROSECONDS for time in times], pa.int64()).cast(
            schema.field("timestamp").type
        ),
        # librdkafka's timestamp types start with 0 (none), those of Kafka and Spark with -1.
        pa.array([time[0] - 1 for time in times], pa.int32()),
    ]
    if include_headers:
        columns.append(_headers(messages, schema.field("headers").type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _places(messages: Sequence[Message], *, is_one_partition: bool) -> list[pa.Array]:
    """Return the columns topic and partition."""
    if is_one_partition:
        first = messages[0]
        scalars = pa.scalar(first.topic(), pa.string()), pa.scalar(first.partition(), pa.int32())
        return [pa.repeat(scalar, len(messages)) for scalar in scalars]
    return [
        pa.array([message.topic() for message in messages], pa.string()),
        pa.array([message.partition() for message in messages], pa.int32()),
    ]


def _headers(messages: Sequence[Message], kind: pa.DataType) -> pa.Array:
    """Return the column headers; null for a record without headers, as in the connector."""
    return pa.array(
        [
            [{"key": header[0], "value": header[1]} for header in headers] if headers else None
            for headers in (message.headers() for message in messages)
        ],
        kind,
    )
