"""The queries that keep state in Spark: closed windows, and the join of three streams.

Beside the query that makes the exact figures, and seldom: each micro-batch costs a second of
processor for planning, whatever is in it. Their watermarks differ by nature (`ordered_at` is years
back in a replay, the join goes by the time things happened here), and Spark takes the least of a
query, so they are two.

What they bring is committed with the number of the micro-batch, and a row that comes again after a
crash replaces its equal.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_analytics import clock
from spark_analytics.jobs import closed_windows, latencies
from spark_analytics.jobs.decoding import decode
from spark_analytics.jobs.settings import JobSettings
from spark_analytics.jobs.topics import DECISIONS, ORDERS, VALIDATIONS
from spark_analytics.serving.writer import BatchResult, Row, ServingWriter

log = logging.getLogger(__name__)

ReadTopics = Callable[[str], DataFrame]
"""Returns the records of topics as a stream."""

_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


class StatefulQueries:
    """Starts the two queries; both end with the session or when they are stopped."""

    def __init__(
        self,
        settings: JobSettings,
        store: ServingWriter,
        checkpoint: str,
        in_batch: AbstractContextManager[object],
    ) -> None:
        self._settings = settings
        self._store = store
        self._checkpoint = checkpoint
        self._in_batch = in_batch

    def start(self, spark: SparkSession, read: ReadTopics) -> list[StreamingQuery]:
        """Start both and return them."""
        events = {
            topic: decode(read(topic), self._settings.registry_url)
            for topic in (ORDERS, VALIDATIONS, DECISIONS)
        }
        windows = closed_windows.transform(events[ORDERS], self._settings.allowed_lateness_ms)
        steps = latencies.transform(events[ORDERS], events[VALIDATIONS], events[DECISIONS])
        # A state store costs files and memory a partition; what is kept is small.
        usual = spark.conf.get(_SHUFFLE_PARTITIONS)
        spark.conf.set(_SHUFFLE_PARTITIONS, "1")
        try:
            return [self._start("closed_windows", windows), self._start("latencies", steps)]
        finally:
            spark.conf.set(_SHUFFLE_PARTITIONS, str(usual))

    def _start(self, view: str, frame: DataFrame) -> StreamingQuery:
        return (
            frame.writeStream.queryName(view)
            .outputMode("append")
            .foreachBatch(partial(self._take, view))
            .option("checkpointLocation", f"{self._checkpoint}-{view}")
            .trigger(processingTime=f"{self._settings.stateful_trigger_ms} milliseconds")
            .start()
        )

    def _take(self, view: str, frame: DataFrame, batch_id: int) -> None:
        with self._in_batch:
            rows: list[Row] = [row.asDict() for row in frame.collect()]
            if not rows:
                return
            # Also a batch that is in the store already, run again after a crash: it changes
            # nothing, and after the loss of a checkpoint numbers begin again.
            result = BatchResult(view, batch_id, views={view: rows})
            self._store.commit(result, timestamp_ms=clock.timestamp_ms())
        log.info("rows committed view=%s batch_id=%d rows=%d", view, batch_id, len(rows))
