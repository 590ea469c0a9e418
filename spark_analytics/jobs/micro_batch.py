"""One micro-batch: decode, remove repeated events, aggregate, commit.

It is two Spark jobs. The first decodes and sends the facts of every event to the driver, which asks
the store for the known ones. The second computes every view of the cached events at once: the rows
travel as JSON with the name of their view. The views are SQL: the same query built from `Column`s
takes hundreds of calls to Java, which in a small batch take longer than Spark's own work.

A crash between any two lines is harmless: before the commit the batch has no effect, after it the
store knows that the batch is done.
"""

import json
import logging
from collections.abc import Callable, Set
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from common.process import clock
from spark_analytics.jobs import facts, funnel, products, revenue, verdicts
from spark_analytics.jobs.decoding import Settings, decode
from spark_analytics.jobs.event_files import EventFiles
from spark_analytics.jobs.events import EVENT
from spark_analytics.jobs.history import OrderHistory
from spark_analytics.jobs.repeats import Position, RecordKey, Sorted, check_key, event_key, sort_out
from spark_analytics.jobs.topics import DECISIONS, INPUTS, ORDERS, PRODUCTS, VALIDATIONS
from spark_analytics.serving.writer import BatchResult, Row, ServingWriter

log = logging.getLogger(__name__)

_ONE_TASK_ROWS = 50_000
_POSITION = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])

# By view, the query and its input topics: most batches have no events of some topics.
_VIEWS = {
    "revenue": (revenue.QUERY, {ORDERS}),
    "products": (products.QUERY, {ORDERS}),
    "failures": (verdicts.FAILURES_QUERY, {ORDERS}),
    "verdicts": (verdicts.QUERY, {VALIDATIONS}),
    "funnel": (funnel.QUERY, {ORDERS, VALIDATIONS, DECISIONS}),
    "product_names": (products.NAMES_QUERY, {PRODUCTS}),
}


@dataclass(frozen=True, slots=True)
class Committed:
    """The figures of a committed batch, for logs and metrics."""

    revision: int
    events: int
    repeated: int
    set_aside: int
    decode_seconds: float
    seconds: float


class MicroBatches:
    """Processes the batches of one query, one after the other."""

    def __init__(
        self,
        store: ServingWriter,
        registry: tuple[str, Settings],
        history: OrderHistory,
        event_files: EventFiles,
        *,
        allowed_lateness_ms: int,
        timestamp_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._registry = registry
        self._history = history
        self._event_files = event_files
        self._allowed_lateness_ms = allowed_lateness_ms
        self._timestamp_ms = timestamp_ms

    def process(self, records: DataFrame, query_id: str, batch_id: int) -> Committed | None:
        """Store the figures of a batch; return None if the store has them already."""
        if self._store.is_committed(query_id, batch_id):
            log.info("batch is in the store already query_id=%s batch_id=%d", query_id, batch_id)
            return None
        started = clock.now_seconds()
        events = decode(self._few_tasks(records), *self._registry).persist()
        try:
            taken = events.selectExpr(*facts.columns()).toArrow()
            keys = facts.record_keys(taken)
            decoded = clock.now_seconds()
            found = self._sort_out(keys)
            kept = _without(events, found.repeated, len(keys))
            views = collect_views(kept, {key.topic for key in keys}, self.watermark_ms())
        finally:
            events.unpersist()
        result = BatchResult(
            query_id,
            batch_id,
            event_keys=found.event_keys,
            check_keys=found.check_keys,
            views=views,
            set_aside=found.set_aside,
            newest_ordered_ms=found.newest_ordered_ms,
        )
        # Before the commit, after which the batch is never repeated.
        new = facts.new_facts(taken, found.repeated)
        self._history.write(new, query_id, batch_id)
        self._event_files.write(new, query_id, batch_id)
        revision = self._store.commit(result, timestamp_ms=self._timestamp_ms())
        return Committed(
            revision,
            events=len(keys),
            repeated=len(found.repeated),
            set_aside=len(found.set_aside),
            decode_seconds=decoded - started,
            seconds=clock.now_seconds() - started,
        )

    def _few_tasks(self, records: DataFrame) -> DataFrame:
        """Return the records in as many tasks as there are cores, not as topic partitions.

        A task costs more than the few records that a partition has in one micro-batch.
        """
        return records.coalesce(records.sparkSession.sparkContext.defaultParallelism)

    def watermark_ms(self) -> int | None:
        """Return the time before which windows count as complete; None before the first event."""
        newest_ms = self._store.property("newest_ordered_ms")
        return None if newest_ms is None else newest_ms - self._allowed_lateness_ms

    def _sort_out(self, keys: list[RecordKey]) -> Sorted:
        known_events = self._store.known_events(filter(None, map(event_key, keys)))
        known_checks = self._store.known_checks(filter(None, map(check_key, keys)))
        return sort_out(keys, known_events, known_checks)


def warm_up(spark: SparkSession) -> None:
    """Compute every view of no events, so that the first orders do not wait for class loading."""
    topics = frozenset(INPUTS)
    collect_views(spark.createDataFrame([], EVENT), topics, watermark_ms=None)


def _without(events: DataFrame, repeated: list[Position], count: int) -> DataFrame:
    """Return the events without repeated ones and problems, as one partition if they are few.

    One partition needs no shuffle to be aggregated, which saves most of a small batch's time.
    """
    kept = events.where("problem IS NULL")
    kept = kept.coalesce(1) if count <= _ONE_TASK_ROWS else kept
    if not repeated:
        return kept
    # Spark takes Arrow data as one table; for a list it makes an RDD and another job.
    rows = [dict(zip(_POSITION.names, position, strict=True)) for position in repeated]
    positions = kept.sparkSession.createDataFrame(pa.Table.from_pylist(rows, _POSITION))
    return kept.join(f.broadcast(positions), _POSITION.names, "left_anti")


def collect_views(
    events: DataFrame, topics: Set[str], watermark_ms: int | None
) -> dict[str, list[Row]]:
    """Return the rows of every view with an input among these topics."""
    queries = {name: query for name, (query, made_from) in _VIEWS.items() if made_from & topics}
    views: dict[str, list[Row]] = {name: [] for name in queries}
    if queries:
        parameters = {"watermark_ms": watermark_ms}
        rows = events.sparkSession.sql(_union(queries), parameters, events=events)
        for name, row in rows.collect():
            views[name].append(json.loads(row))
    return views


def _union(queries: dict[str, str]) -> str:
    """Return one query for the rows of all views as (view, JSON), so that one job computes them."""
    row = "to_json(struct(*), map('ignoreNullFields', 'false')) AS row"
    return " UNION ALL ".join(
        f"SELECT '{name}' AS view, {row} FROM ({query})" for name, query in queries.items()
    )
