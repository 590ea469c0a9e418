"""The regular computation of customer segments: a batch over the history, beside the stream."""

import logging
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from spark_analytics.jobs import segments
from spark_analytics.jobs.history import OrderHistory
from spark_analytics.serving.writer import ServingWriter
from spark_analytics.session import work_in_pool

log = logging.getLogger(__name__)

_END_SECONDS = 10.0


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
        made = [row.asDict() for row in segments.transform(validated).collect()]
        self._store.replace_segments(made)
        self._seen_files = files
        log.info("customer segments made files=%d customers=%d", len(files), len(made))
        return len(made)
