"""The query: started once its topics exist, restarted after a failure, stopped cleanly.

All of this runs in one thread; Spark calls back in another for each micro-batch. The event loop
that serves HTTP only reads `missing`.
"""

import logging
import threading
from pathlib import Path

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from common.kafka.errors import KafkaError
from common.process import clock
from spark_analytics.jobs.batch_gate import BatchGate
from spark_analytics.jobs.event_files import EventFiles
from spark_analytics.jobs.history import OrderHistory
from spark_analytics.jobs.input_topics import InputTopics
from spark_analytics.jobs.metrics import JobMetrics
from spark_analytics.jobs.micro_batch import MicroBatches, warm_up
from spark_analytics.jobs.publishing import ResultsPublisher
from spark_analytics.jobs.segments import SegmentsJob
from spark_analytics.jobs.settings import JobSettings
from spark_analytics.jobs.stateful_queries import TOPICS, StatefulQueries
from spark_analytics.jobs.topics import INPUTS
from spark_analytics.serving.writer import ServingWriter
from spark_analytics.session import spark_session, work_in_pool

log = logging.getLogger(__name__)

_QUERY_NAME = "order-analytics"
_HEARTBEAT_SECONDS = 1.0
_RESTART_SECONDS = 1.0
_BATCH_END_SECONDS = 20.0
_TASK_RECORDS = 5_000

# The version of the checkpoint: a change of topics or state needs another one.
_CHECKPOINT_VERSION = 1


class OrderStream:
    """One Spark session and one query over all input topics."""

    def __init__(self, settings: JobSettings, metrics: JobMetrics) -> None:
        self.missing = ["Spark"]
        self._settings = settings
        self._metrics = metrics
        self._stopping = threading.Event()
        self._gate = BatchGate()
        self._stateful_gate = BatchGate()
        self._query_id = ""
        self._has_query_id = threading.Event()
        self._store = ServingWriter(Path(settings.store))
        history = self._beside_store(settings.history, "history")
        self._history = OrderHistory(Path(history))
        event_files = EventFiles(Path(f"{history}-streams"), TOPICS)
        self._batches = MicroBatches(
            self._store,
            (settings.registry_url, tuple(sorted(settings.kafka.registry.items()))),
            self._history,
            event_files,
            allowed_lateness_ms=settings.allowed_lateness_ms,
            timestamp_ms=clock.timestamp_ms,
        )
        self._stateful = StatefulQueries(
            settings, self._store, event_files, self._checkpoint(), self._stateful_gate
        )
        self._publisher = ResultsPublisher(settings.kafka, self._store, settings.replication_factor)
        self._inputs = InputTopics(settings.kafka)

    def stop(self) -> None:
        """Request the end of the stream; `run` returns after it."""
        self._stopping.set()

    def run(self) -> None:
        """Run until stopped; raise SparkGoneError if Spark's Java process has ended."""
        spark = self._start_session()
        try:
            warm_up(spark)
            segments = SegmentsJob(
                spark, self._store, self._history, self._settings.segments_interval_ms
            )
            with segments:
                while not self._stopping.is_set():
                    self._wait_for_topics()
                    if not self._stopping.is_set():
                        self._run_query(spark)
        finally:
            spark.stop()
            self._store.close()

    def _start_session(self) -> SparkSession:
        defaults = {
            "spark.master": self._settings.master,
            # Micro-batches are small: fewer tasks, and no new plan between stages.
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            # Code generation for a few hundred rows costs a quarter of the CPU time.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.scheduler.mode": "FAIR",
            # A micro-batch ends before C2 has compiled code for it, and on two cores the compiler
            # and a parallel collector use half the CPU time. Without C2 Java reserves 48 MB for
            # compiled code, which Spark fills within minutes; then Java continues with the
            # interpreter.
            "spark.driver.extraJavaOptions": (
                "-Xss16m -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m -XX:+UseSerialGC"
            ),
            "spark.ui.enabled": "false",
            "spark.sql.ui.retainedExecutions": "20",
            "spark.sql.streaming.numRecentProgressUpdates": "20",
            "spark.sql.streaming.minBatchesToRetain": "20",
            # An empty batch, which only advances the watermark, costs as much as a full one.
            "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        }
        started = clock.now_seconds()
        spark = spark_session("millstream-analytics", **defaults | self._settings.spark_settings())
        log.info("Spark is up after_seconds=%.1f", clock.now_seconds() - started)
        return spark

    # --- waiting ---

    def _wait_for_topics(self) -> None:
        self.missing = ["topics " + ", ".join(INPUTS)]
        while not self._stopping.is_set():
            if self._inputs.absent() == []:
                return
            self._stopping.wait(_RESTART_SECONDS)

    # --- the query ---

    def _run_query(self, spark: SparkSession) -> None:
        """Run the query until stopped or failed."""
        self._has_query_id.clear()
        try:
            query = self._start_query(spark)
            self._query_id = str(query.id)
            self._has_query_id.set()
            self._supervise(spark, query)
            self._stop_queries(spark)
        except PySparkException as error:
            _raise_if_spark_is_gone(spark)
            self._stop_queries(spark)
            log.warning("query failed, starting it again error=%s", str(error)[:2000])
            self._metrics.restarts.inc()
            self._stopping.wait(_RESTART_SECONDS)

    def _read(self, spark: SparkSession) -> DataFrame:
        """Return the records of all input topics as a stream."""
        settings = self._settings
        return (
            spark.readStream.format(settings.source_format)
            .options(**{f"kafka.{name}": value for name, value in settings.kafka.java().items()})
            .option("kafka.isolation.level", "read_committed")
            # A consumer that is assigned another offset waits for its current fetch.
            .option("kafka.fetch.max.wait.ms", "20")
            .option("subscribe", ",".join(INPUTS))
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", settings.max_offsets_per_trigger)
            # A task is a Python process or two; the connector uses threads and ignores the option.
            .option("minRecordsPerPartition", _TASK_RECORDS)
            # The topics keep a few days: deleted records were read before, or are lost for ever.
            .option("failOnDataLoss", "false")
            .load()
        )

    def _start_query(self, spark: SparkSession) -> StreamingQuery:
        work_in_pool(spark, _QUERY_NAME)
        return (
            self._read(spark)
            .writeStream.queryName(_QUERY_NAME)
            .foreachBatch(self._take_batch)
            .option("checkpointLocation", str(self._checkpoint()))
            .trigger(processingTime=f"{self._settings.trigger_ms} milliseconds")
            .start()
        )

    def _checkpoint(self) -> str:
        return (
            f"{self._beside_store(self._settings.checkpoint, 'checkpoints')}-v{_CHECKPOINT_VERSION}"
        )

    def _beside_store(self, folder: str, kind: str) -> str:
        """Return a folder for files of this store alone, so that files and store always agree."""
        folder = folder or f"{Path(self._settings.store).absolute()}-{kind}"
        return f"{folder.rstrip('/')}/{self._store.store_id}"

    def _take_batch(self, records: DataFrame, batch_id: int) -> None:
        self._has_query_id.wait()
        with self._gate.batch():
            committed = self._batches.process(records, self._query_id, batch_id)
        if committed is None:
            return
        self._metrics.batch_seconds.observe(committed.seconds)
        self._metrics.events.inc(committed.events)
        self._metrics.repeated.inc(committed.repeated)
        self._metrics.set_aside.inc(committed.set_aside)
        log.info(
            "batch committed batch_id=%d events=%d repeated=%d set_aside=%d decode_seconds=%.2f "
            "seconds=%.2f",
            batch_id,
            committed.events,
            committed.repeated,
            committed.set_aside,
            committed.decode_seconds,
            committed.seconds,
        )

    def _supervise(self, spark: SparkSession, query: StreamingQuery) -> None:
        """Write heartbeats while the queries run; raise the error of a failed query."""
        while not self._stopping.wait(_HEARTBEAT_SECONDS):
            if not query.isActive:
                query.awaitTermination()  # raises its error
                return
            # The page has priority: the other queries start once it shows figures.
            if self._store.property("revision"):
                self._stateful.keep_running(spark)
            self._beat()

    def _beat(self) -> None:
        """Write a heartbeat into the store if Kafka answers; without it the page says stale."""
        absent = self._inputs.absent()
        self.missing = ["a broker"] if absent is None else absent
        self._metrics.is_source_reachable.set(0 if absent is None else 1)
        if absent is None:
            return
        self._store.set_properties(heartbeat_ms=clock.timestamp_ms())
        try:
            self._metrics.published.inc(self._publisher.publish())
        except (KafkaException, KafkaError) as error:
            log.warning("results are not published yet error=%s", error)

    def _stop_queries(self, spark: SparkSession) -> None:
        with (
            self._gate.closed(_BATCH_END_SECONDS),
            self._stateful_gate.closed(_BATCH_END_SECONDS),
        ):
            for query in spark.streams.active:
                query.stop()
        self._stateful.forget()


def _raise_if_spark_is_gone(spark: SparkSession) -> None:
    """Raise SparkGoneError if the Java process does not answer: then only a new process helps."""
    try:
        is_stopped = spark.sparkContext._jsc.sc().isStopped()  # noqa: SLF001
    except (Py4JError, OSError) as error:
        raise SparkGoneError("Spark's Java process has gone") from error
    if is_stopped:
        raise SparkGoneError("Spark's context is stopped")


class SparkGoneError(RuntimeError):
    """The session is unusable."""
