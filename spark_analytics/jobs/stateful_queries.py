"""The queries that keep state in Spark: closed windows, and the join of three streams.

Beside the query that makes the exact figures, out of the files it leaves, and seldom: each
micro-batch costs a second of processor for planning, whatever is in it. Their watermarks differ by
nature (`ordered_at` is years back in a replay, the join goes by the time things happened here), and
Spark takes the least of a query, so they are two.

What they bring is committed with the number of the micro-batch, and a row that comes again after a
crash replaces its equal.
"""

import logging
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_analytics import clock
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
"""What each reads."""

_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_BETWEEN_STARTS_SECONDS = 15.0
# The version of what a checkpoint holds: other sources or other state need another one.
_CHECKPOINT_VERSION = 2


class StatefulQueries:
    """Keeps the two queries running; they end with the session or when they are stopped.

    One is started at a time, so that the exact figures get on meanwhile. One that fails is started
    again by itself; the exact figures do not wait for it.
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
        """Give them what is new; start one that does not run, unless another just did."""
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
        """Twice in each interval between their micro-batches."""
        if clock.now_seconds() >= self._next_hand_on:
            self._next_hand_on = clock.now_seconds() + self._settings.stateful_trigger_ms / 2000
            self._event_files.hand_on()

    def forget(self) -> None:
        """Take all for stopped."""
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
            # Also a batch that is in the store already, run again after a crash: it changes
            # nothing, and after the loss of a checkpoint numbers begin again.
            result = BatchResult(view, batch_id, views={view: rows})
            self._store.commit(result, timestamp_ms=clock.timestamp_ms())
        log.info("rows committed view=%s batch_id=%d rows=%d", view, batch_id, len(rows))
