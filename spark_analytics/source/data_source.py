"""The data source `millstream`, the target of `format("millstream")`.

    spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", "127.0.0.1:9092").option("subscribe", "orders").load()

`spark_analytics.session` registers it. Spark pickles it by reference, so its workers must be able
to import this module.
"""

# ruff: noqa: N802 - Spark names these methods.

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from spark_analytics.source.kafka_client import TopicOffsets
from spark_analytics.source.options import (
    SourceOptions,
    parse_sink_options,
    parse_source_options,
    wants_headers,
)
from spark_analytics.source.planner import Planner
from spark_analytics.source.range_reader import RangeReader
from spark_analytics.source.ranges import group_ranges
from spark_analytics.source.records import SCHEMA, SCHEMA_WITH_HEADERS
from spark_analytics.source.sink import MillstreamStreamWriter, MillstreamWriter, check_columns
from spark_analytics.source.stream import MillstreamStreamReader


class MillstreamBatchReader(DataSourceReader):
    """Spark's side of the planner and the range reader."""

    def __init__(self, options: SourceOptions, reader: RangeReader) -> None:
        self._options = options
        self._reader = reader

    def partitions(self) -> list[InputPartition]:
        """Return the tasks; for an empty list Spark makes one task of None."""
        ranges = Planner(self._options, TopicOffsets(self._options)).batch_ranges()
        groups = group_ranges(ranges, self._options.min_records_per_partition)
        return [InputPartition(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task's records, in a worker."""
        return iter(()) if partition.value is None else self._reader.read(partition.value)


class MillstreamDataSource(DataSource):
    """Kafka topics, with the options and the schema of Spark's Kafka connector."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "millstream"

    def schema(self) -> StructType:
        """Return the connector's schema, with `headers` if `includeHeaders` is set."""
        return SCHEMA_WITH_HEADERS if wants_headers(self.options) else SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query."""
        options = parse_source_options(self.options, is_stream=False)
        return MillstreamBatchReader(options, _range_reader(options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a stream."""
        options = parse_source_options(self.options, is_stream=True)
        return MillstreamStreamReader(options, _range_reader(options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch query; it always appends to the topic."""
        options = parse_sink_options(self.options)
        check_columns(schema, options)
        return MillstreamWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a stream."""
        options = parse_sink_options(self.options)
        check_columns(schema, options)
        return MillstreamStreamWriter(options)


def _range_reader(options: SourceOptions) -> RangeReader:
    return RangeReader(
        client=dict(options.client),
        fail_on_data_loss=options.fail_on_data_loss,
        include_headers=options.include_headers,
        poll_timeout_ms=options.poll_timeout_ms,
    )
