"""Customer segments now and then: a batch over the whole history, beside the stream."""

import logging
import threading
from datetime import UTC, datetime
from decimal import Decimal
from types import TracebackType
from typing import Self

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_analytics.jobs import segments
from spark_analytics.jobs.events import AMOUNT
from spark_analytics.serving.writer import ServingWriter

log = logging.getLogger(__name__)

_HISTORY = f"customer_id string, ordered_at timestamp, total {AMOUNT.simpleString()}"
_END_SECONDS = 10.0


class SegmentsJob:
    """Makes the segments anew whenever orders have come in, in a thread of its own."""

    def __init__(self, spark: SparkSession, store: ServingWriter, interval_ms: int) -> None:
        self._spark = spark
        self._store = store
        self._interval_seconds = interval_ms / 1000
        self._stopping = threading.Event()
        self._seen_orders = 0
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
        while not self._stopping.wait(self._interval_seconds):
            try:
                self.make()
            except (PySparkException, Py4JError, OSError) as error:
                log.warning("customer segments were not made error=%s", str(error)[:500])

    def make(self) -> int:
        """Make the segments if there are new orders; return how many customers have one."""
        history = self._store.history()
        if len(history) == self._seen_orders:
            return 0
        rows = [
            (customer_id, datetime.fromtimestamp(ordered_ms / 1000, UTC), _amount(total_e4))
            for customer_id, ordered_ms, total_e4 in history
        ]
        frame = self._spark.createDataFrame(rows, _HISTORY)
        made = [row.asDict() for row in segments.transform(frame).collect()]
        self._store.replace_segments(made)
        self._seen_orders = len(history)
        log.info("customer segments made orders=%d customers=%d", len(history), len(made))
        return len(made)


def _amount(amount_e4: int) -> Decimal:
    return Decimal(amount_e4).scaleb(-4)
