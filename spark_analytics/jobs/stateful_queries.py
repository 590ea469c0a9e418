"""The queries with state in Spark: closed windows, and the join of three streams.

They run beside the query of the exact figures, on the files that it writes, and seldom: each
micro-batch takes a second of CPU time for planning, whatever its size. Their watermarks differ
(`ordered_at` is years back in a replay, the join uses the time of the events here), and Spark uses
the lowest watermark of a query, so there are two queries.

Their rows are committed with the number of the micro-batch, and a row that is repeated after a
crash replaces its equal.
"""

import logging
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from common.process import clock
from spark_analytics.jobs import closed_windows, latencies
from spark_analytics.jobs.batch_gate import BatchGate
from spark_analytics.jobs.event_files import EventFiles
from spark_analytics.jobs.settings import JobSettings
from spark_analytics.jobs.topics import DECISIONS, ORDERS, VALIDATIONS
from spark_analytics.serving.writer import BatchResult, Row, ServingWriter
from spark_analytics.session import work_in_pool

log = logging.getLogger(__name__)

WINDOWS, LATENCIES = "closed_windows", "latencies"
TOPICS = {WINDOWS: (ORDERS,), LATENCIES: (ORDERS, VALIDATIONS, DECISIONS)}
"""By query, its topics."""

_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_BETWEEN_STARTS_SECONDS = 15.0
# The version of the checkpoints: a change of sources or state needs another one.
_CHECKPOINT_VERSION = 2


class StatefulQueries:
    """Keeps the two queries running, until the session ends or they are stopped.

    One is started at a time, so that the exact figures make progress meanwhile. A failed query is
    restarted alone; the exact figures do not wait for it.
    """

    def __init__(
        self,
        settings: JobSettings,
        store: ServingWriter,
        event_files: EventFiles,
        checkpoint: str,
        gate: BatchGate,
    ) -> None:
        self._settings = settings
        self._store = store
        self._event_files = event_files
        self._checkpoint = checkpoint
        self._gate = gate
        self._running: dict[str, StreamingQuery] = {}
        self._next_start = 0.0
        self._next_hand_on = 0.0

    def keep_running(self, spark: SparkSession) -> None:
        """Pass new files to the queries; start one that does not run, with a pause between two."""
        self._hand_on()
        if clock.now_seconds() < self._next_start:
            return
        for view in TOPICS:
            query = self._running.get(view)
            if query is not None and query.isActive:
                continue
            if query is not None:
                log.warning("query failed view=%s error=%s", view, str(query.exception())[:2000])
            self._next_start = clock.now_seconds() + _BETWEEN_STARTS_SECONDS
            try:
                self._running[view] = self._start_small(spark, view)
            except PySparkException as error:
                log.warning("query not started view=%s error=%s", view, str(error)[:2000])
            return

    def _hand_on(self) -> None:
        """Pass new files to the queries, twice in each interval between their micro-batches."""
        if clock.now_seconds() >= self._next_hand_on:
            self._next_hand_on = clock.now_seconds() + self._settings.stateful_trigger_ms / 2000
            self._event_files.hand_on()

    def forget(self) -> None:
        """Forget all queries, which are stopped."""
        self._running.clear()

    def _frame(self, spark: SparkSession, view: str) -> DataFrame:
        orders, *others = [self._event_files.read(spark, view, topic) for topic in TOPICS[view]]
        if view == WINDOWS:
            return closed_windows.transform(orders, self._settings.allowed_lateness_ms)
        checks, decisions = others
        return latencies.transform(orders, checks, decisions)

    def _start_small(self, spark: SparkSession, view: str) -> StreamingQuery:
        """Start a query with one shuffle partition: each costs files and memory for its state."""
        work_in_pool(spark, view)
        usual = spark.conf.get(_SHUFFLE_PARTITIONS)
        spark.conf.set(_SHUFFLE_PARTITIONS, "1")
        try:
            return self._start(view, self._frame(spark, view))
        finally:
            spark.conf.set(_SHUFFLE_PARTITIONS, str(usual))

    def _start(self, view: str, frame: DataFrame) -> StreamingQuery:
        return (
            frame.writeStream.queryName(view)
            .outputMode("append")
            .foreachBatch(partial(self._take, view))
            .option("checkpointLocation", f"{self._checkpoint}-{view}-v{_CHECKPOINT_VERSION}")
            .trigger(processingTime=f"{self._settings.stateful_trigger_ms} milliseconds")
            .start()
        )

    def _take(self, view: str, frame: DataFrame, batch_id: int) -> None:
        with self._gate.batch():
            rows: list[Row] = frame.toArrow().to_pylist()
            if not rows:
                return
            # A batch that is repeated after a crash is committed again too: it changes nothing. Its
            # number proves nothing, because numbers restart after the loss of a checkpoint.
            result = BatchResult(view, batch_id, views={view: rows})
            self._store.commit(result, timestamp_ms=clock.timestamp_ms())
        log.info("rows committed view=%s batch_id=%d rows=%d", view, batch_id, len(rows))
