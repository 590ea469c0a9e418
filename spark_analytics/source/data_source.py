"""The data source `millstream`, the target of `format("millstream")`.

    spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", "127.0.0.1:9092").option("subscribe", "orders").load()

`spark_analytics.session` registers it. Spark pickles it by reference, so its workers must be able
to import this module.
"""

# ruff: noqa: N802 - Spark names these methods.

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from spark_analytics.source.batch import MillstreamBatchReader
from spark_analytics.source.options import (
    SourceOptions,
    parse_sink_options,
    parse_source_options,
    wants_headers,
)
from spark_analytics.source.range_reader import RangeReader
from spark_analytics.source.records import SCHEMA, SCHEMA_WITH_HEADERS
from spark_analytics.source.sink import MillstreamStreamWriter, MillstreamWriter, check_columns
from spark_analytics.source.stream import MillstreamStreamReader


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
