"""Records into events: Avro by the writer's schema id, in the executors, without jars.

A Python worker keeps its readers and schemas for its lifetime. It asks the registry once per schema
id; if the registry does not answer, the task fails, Spark retries it, and after that the query's
supervisor restarts the query. Bytes that are no event become a row with a `problem`: they never
stop a partition.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from common.registry import loader
from common.registry.wire import EventReader, MalformedEventError, UnknownSchemaError, projection
from spark_analytics.jobs.events import EVENT
from spark_analytics.jobs.topics import DECISIONS, ORDERS, PRODUCTS, VALIDATIONS

_FIELDS = {
    ORDERS: (
        "orders/order_event",
        ("order_id", "version", "state", "reasons", "ordered_at", "created_at", "occurred_at",
         "customer_id", "country", "total", "lines"),
    ),
    VALIDATIONS: ("orders/order_validation", ("order_id", "check", "result", "code")),
    DECISIONS: ("orders/order_decision", ("order_id", "decision")),
    PRODUCTS: ("catalogue/product", ("product_id", "description", "updated_at")),
}  # fmt: skip

Settings = tuple[tuple[str, str], ...]
"""The settings of a client of a secured registry, which Spark sends to its workers."""
FetchSchema = Callable[[int], dict[str, Any]]
Event = dict[str, Any]


def decode(records: DataFrame, registry_url: str, settings: Settings = ()) -> DataFrame:
    """Return the events of records with topic, partition, offset, timestamp, value."""
    wanted = records.select("topic", "partition", "offset", "timestamp", "value")
    return wanted.mapInArrow(partial(_decode_batches, registry_url, settings), EVENT)


def _decode_batches(
    registry_url: str, settings: Settings, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    decoder = decoder_of(registry_url, settings)
    for batch in batches:
        yield decoder.decode_batch(batch)


@cache
def decoder_of(registry_url: str, settings: Settings = ()) -> "Decoder":
    """Return this process's decoder for one registry."""
    return Decoder(partial(fetch_schema, registry_url, settings))


def fetch_schema(registry_url: str, settings: Settings, schema_id: int) -> dict[str, Any]:
    """Return the schema with this id; raise MalformedEventError or RegistryAwayError."""
    # A Python worker that has all schemas never needs aiohttp.
    from common.registry.client import SchemaRegistryClient

    return asyncio.run(SchemaRegistryClient(registry_url, dict(settings)).schema(schema_id))


class Decoder:
    """The readers of all input topics, and a cache of schemas."""

    def __init__(self, fetch: FetchSchema) -> None:
        self._fetch = fetch
        self._readers = {
            topic: EventReader(projection(loader.load(name), *names))
            for topic, (name, names) in _FIELDS.items()
        }
        self._arrow_schema = to_arrow_schema(EVENT, timezone="UTC")

    def decode_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return one row of EVENT for each record."""
        positions = {
            "topic": batch.column("topic"),
            "partition": batch.column("partition"),
            "offset": batch.column("offset"),
            "appended_at": batch.column("timestamp"),
        }
        values = batch.column("value").to_pylist()
        events = [
            self.decode(topic, value)
            for topic, value in zip(positions["topic"].to_pylist(), values, strict=True)
        ]
        columns = [
            positions[column.name].cast(column.type)
            if column.name in positions
            else pa.array([event.get(column.name) for event in events], column.type)
            for column in self._arrow_schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._arrow_schema)

    def decode(self, topic: str, value: bytes | None) -> Event:
        """Return the event of a record, or one that has only a problem."""
        if value is None and topic == PRODUCTS:
            return {}  # the tombstone of a product in a compacted topic
        try:
            return self._read(self._readers[topic], value)
        except MalformedEventError as error:
            return {"problem": str(error)}

    def _read(self, reader: EventReader, value: bytes | None) -> Event:
        try:
            return reader.decode(value)
        except UnknownSchemaError as error:
            reader.learn(error.schema_id, self._fetch(error.schema_id))
        return reader.decode(value)
