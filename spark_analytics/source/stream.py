"""The streaming reader: planned in one long-lived process, read in the workers.

A stream does not fail at once if Kafka is unreachable: the query waits at its offsets, and
continues when Kafka answers. It fails after `kafkaConsumer.pollTimeoutMs` without an answer.

Spark calls `commit` one batch late, and not at all for the last batch of an AvailableNow run, so it
can only report progress. If `kafka.group.id` is set, the group's committed offsets follow the
query, so that Kafka's tools show its lag.
"""

# ruff: noqa: N802 - Spark names these methods.

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from common.kafka.admin.group_offsets import set_offsets
from common.kafka.errors import KafkaError
from common.kafka.topics import TopicPartition as Partition
from common.process import clock
from spark_analytics.source.kafka_client import TopicOffsets, UnreachableError, ask
from spark_analytics.source.offsets import Offsets, document_of, offsets_of
from spark_analytics.source.options import SourceOptions
from spark_analytics.source.planner import Planner
from spark_analytics.source.range_reader import RangeReader
from spark_analytics.source.ranges import group_ranges

log = logging.getLogger(__name__)
T = TypeVar("T")
Document = dict[str, Any]

_RETRY_SECONDS = 0.2
_LOSS_CONFIRMATION_SECONDS = 1.0
# A query without a trigger calls `latestOffset` a hundred times a second.
_LEAST_SECONDS_BETWEEN_ANSWERS = 0.02


class MillstreamStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark's side of the planner and the range reader."""

    def __init__(self, options: SourceOptions, reader: RangeReader) -> None:
        self._options = options
        self._reader = reader
        self._planner: Planner | None = None
        self._last_answer = 0.0
        self._away_since: float | None = None

    def initialOffset(self) -> Document:
        """Return the start offsets of a query without a checkpoint."""
        return document_of(self._insist(self._plan().first_offsets))

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return maxOffsetsPerTrigger."""
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: Document, limit: ReadLimit) -> Document:
        """Return the end offsets of the next micro-batch; `start` while Kafka is unreachable."""
        max_rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        try:
            end = self._plan().next_offsets(offsets_of(start), max_rows)
        except UnreachableError as error:
            self._wait_while_away(error)
            return start
        self._away_since = None
        self._breathe()
        return document_of(end)

    def reportLatestOffset(self) -> Document | None:
        """Return the end offsets of the logs, for the query's progress."""
        latest = self._plan().latest
        return document_of(latest) if latest else None

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the stream to the records that exist at this time."""
        self._insist(self._plan().end_at_latest)

    def partitions(self, start: Document, end: Document) -> Sequence[InputPartition]:
        """Return the tasks of a micro-batch."""
        plan = self._plan()
        ranges = self._insist(lambda: plan.stream_ranges(offsets_of(start), offsets_of(end)))
        groups = group_ranges(ranges, self._options.min_records_per_partition)
        return [InputPartition(group) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task's records, in a worker."""
        return self._reader.read(partition.value)

    def commit(self, end: Document) -> None:
        """Commit the query's offsets for the group, if `kafka.group.id` is set."""
        group_id = self._options.client.get("group.id")
        if group_id:
            _commit(self._options, group_id, offsets_of(end))

    def __getstate__(self) -> Document:
        """Return the state for the workers, without the planner and its connection."""
        return {**self.__dict__, "_planner": None}

    def _plan(self) -> Planner:
        if self._planner is None:
            self._planner = Planner(
                self._options,
                TopicOffsets(self._options),
                pause=lambda: time.sleep(_LOSS_CONFIRMATION_SECONDS),
            )
        return self._planner

    def _wait_while_away(self, error: UnreachableError) -> None:
        now = clock.now_seconds()
        self._away_since = self._away_since or now
        if (now - self._away_since) * 1000 > self._options.poll_timeout_ms:
            raise error
        log.warning("Kafka is away, waiting error=%s", error)
        time.sleep(_RETRY_SECONDS)

    def _breathe(self) -> None:
        earliest = self._last_answer + _LEAST_SECONDS_BETWEEN_ANSWERS
        time.sleep(max(0.0, earliest - clock.now_seconds()))
        self._last_answer = clock.now_seconds()

    def _insist(self, ask: Callable[[], T]) -> T:
        """Call `ask` until Kafka answers, at most for pollTimeoutMs."""
        deadline = clock.now_seconds() + self._options.poll_timeout_ms / 1000
        while True:
            try:
                return ask()
            except UnreachableError:
                if clock.now_seconds() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)


def _commit(options: SourceOptions, group_id: str, offsets: Offsets) -> None:
    reached = {Partition(*key): offset for key, offset in offsets.items()}
    try:
        ask(options, lambda client: set_offsets(client, group_id, reached))
    except (UnreachableError, KafkaError) as error:
        log.warning("progress is not shown group=%s error=%s", group_id, error)
