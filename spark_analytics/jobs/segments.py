"""Customer segments by recency, frequency and monetary value (RFM), over the whole history.

Each customer gets 1 to 5 points for each of the three, by the quintiles of all customers; the
points for recency and frequency give the segment. Equal values get equal points. `SegmentsJob`
computes them regularly, beside the stream.
"""

import logging
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from spark_analytics.jobs.events import sum_e4
from spark_analytics.jobs.history import OrderHistory
from spark_analytics.serving.writer import ServingWriter
from spark_analytics.session import work_in_pool

log = logging.getLogger(__name__)

_END_SECONDS = 10.0

_DAY_MS = 86_400_000
_QUINTILES = [0.2, 0.4, 0.6, 0.8]


def transform(history: DataFrame) -> DataFrame:
    """Return the segments of customers from customer_id, ordered_at, total of their orders.

    Recency is in whole days before the newest order of all, not before today, so a replayed history
    has the same result.
    """
    customers = _customers(history)
    limits = customers.agg(
        *[
            f.percentile(name, f.array(*map(f.lit, _QUINTILES))).alias(f"{name}_limits")
            for name in ("recency_days", "frequency", "monetary_e4")
        ]
    )
    scored = customers.crossJoin(f.broadcast(limits)).select(
        "customer_id",
        "recency_days",
        "frequency",
        "monetary_e4",
        (6 - _points("recency_days")).alias("recency_score"),
        _points("frequency").alias("frequency_score"),
        _points("monetary_e4").alias("monetary_score"),
    )
    return scored.withColumn("segment", _segment())


def _customers(history: DataFrame) -> DataFrame:
    newest = history.agg(f.max("ordered_at").alias("newest"))
    age_ms = f.unix_millis("newest") - f.unix_millis("ordered_at")
    orders = history.crossJoin(f.broadcast(newest)).withColumn("age_ms", age_ms)
    return orders.groupBy("customer_id").agg(
        f.floor(f.min("age_ms") / _DAY_MS).alias("recency_days"),
        f.count(f.lit(1)).alias("frequency"),
        sum_e4(f.col("total")).alias("monetary_e4"),
    )


def _points(name: str) -> Column:
    """Return 1 + the count of quintile limits that the value exceeds."""
    exceeded = f.filter(f"{name}_limits", lambda limit: f.col(name) > limit)
    return 1 + f.size(exceeded)


def _segment() -> Column:
    recency, frequency = f.col("recency_score"), f.col("frequency_score")
    return (
        f.when((recency >= 4) & (frequency >= 4), "champions")
        .when((recency >= 3) & (frequency >= 3), "loyal")
        .when(recency >= 4, "new or promising")
        .when((recency <= 2) & (frequency >= 3), "at risk")
        .when(recency <= 2, "hibernating")
        .otherwise("needs attention")
    )


class SegmentsJob:
    """Computes the segments again after new orders, in its own thread."""

    def __init__(
        self, spark: SparkSession, store: ServingWriter, history: OrderHistory, interval_ms: int
    ) -> None:
        self._spark = spark
        self._store = store
        self._history = history
        self._interval_seconds = interval_ms / 1000
        self._stopping = threading.Event()
        self._seen_files: list[Path] = []
        self._thread = threading.Thread(target=self._run, name="segments", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        work_in_pool(self._spark, "segments")
        while not self._stopping.wait(self._interval_seconds):
            try:
                self.make()
            except (PySparkException, Py4JError, OSError) as error:
                log.warning("customer segments were not made error=%s", str(error)[:500])

    def make(self) -> int:
        """Compute the segments if there are new orders; return the count of customers."""
        self._history.compact()
        files = self._history.files()
        if files == self._seen_files:
            return 0
        validated = self._history.read(self._spark).where(f.col("state") == "VALIDATED")
        made = [row.asDict() for row in transform(validated).collect()]
        self._store.replace_segments(made)
        self._seen_files = files
        log.info("customer segments made files=%d customers=%d", len(files), len(made))
        return len(made)
