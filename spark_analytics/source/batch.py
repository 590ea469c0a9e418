"""The batch reader: one plan, then the same range reader as the stream."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from spark_analytics.source.kafka_client import TopicOffsets
from spark_analytics.source.options import SourceOptions
from spark_analytics.source.planner import Planner
from spark_analytics.source.range_reader import RangeReader
from spark_analytics.source.ranges import group_ranges


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
