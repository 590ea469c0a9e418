"""The plan of a query: the ranges of a batch query, or of each micro-batch of a stream.

Pure but for its questions to `LogEdges`. Between two micro-batches a partition may grow (its new
records are read), be created (it is read from its first record), or be deleted or truncated (data
loss: an error, or with failOnDataLoss=false a warning, and the existing records are read).
"""

import logging
from collections.abc import Callable, Sequence

from spark_analytics.source.edges import LogEdges, end_offsets, start_offsets
from spark_analytics.source.offsets import (
    OffsetRange,
    Offsets,
    limit_rows,
    moved_back,
    not_beyond,
    ranges_between,
)
from spark_analytics.source.options import SourceOptions
from spark_analytics.source.ranges import split_ranges

log = logging.getLogger(__name__)

LOSS_CONFIRMATIONS = 3


class DataLossError(RuntimeError):
    """Records were deleted before they were read."""


class Planner:
    """The planner of one query."""

    def __init__(
        self, options: SourceOptions, kafka: LogEdges, pause: Callable[[], None] = lambda: None
    ) -> None:
        self._options = options
        self._pause = pause
        self._kafka = kafka
        self._target: Offsets | None = None  # the end offsets of an AvailableNow run
        self.latest: Offsets = {}  # the end offsets of the logs in the last answer

    def batch_ranges(self) -> list[OffsetRange]:
        """Return the ranges of a batch query."""
        start = start_offsets(self._options, self._kafka)
        end = end_offsets(self._options, self._kafka)
        if behind := moved_back(start, end):
            self._lose(f"partitions end before the start asked for: {sorted(behind)}")
        return self._split(ranges_between(start, end))

    def first_offsets(self) -> Offsets:
        """Return the start offsets of a stream without a checkpoint."""
        return start_offsets(self._options, self._kafka)

    def end_at_latest(self) -> None:
        """Limit the stream to the records that exist at this time."""
        self._target = self._kafka.latest(self._kafka.partitions())

    def next_offsets(self, start: Offsets, max_rows: int | None) -> Offsets:
        """Return the end offsets of the next micro-batch; `start` if there are no new records."""
        found = self._believed_ends(start)
        self.latest = found
        self._check_loss(start, found)
        end = found if self._target is None else not_beyond(found, self._target)
        if max_rows is None:
            return end
        return limit_rows(self._with_new(start, end), end, max_rows)

    def _believed_ends(self, start: Offsets) -> Offsets:
        """Return the end offsets of the logs; those that mean data loss only if they are confirmed.

        A broker that was just elected or started may answer an end offset that is too low. A query
        that continued there would read records twice.
        """
        found = self._kafka.latest(self._kafka.partitions())
        for _ in range(LOSS_CONFIRMATIONS):
            if start.keys() <= found.keys() and not moved_back(start, found):
                break
            self._pause()
            found = self._kafka.latest(self._kafka.partitions())
        return found

    def stream_ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """Return the ranges of a micro-batch; a new partition is read from its first record."""
        return self._split(ranges_between(self._with_new(start, end), end))

    def _with_new(self, start: Offsets, end: Offsets) -> Offsets:
        new = sorted(end.keys() - start.keys())
        if not new:
            return start
        first = self._kafka.earliest(new)
        if cut_off := {key: offset for key, offset in first.items() if offset > 0}:
            self._lose(f"new partitions do not start at 0: {cut_off}")
        return start | first

    def _check_loss(self, start: Offsets, found: Offsets) -> None:
        if gone := sorted(start.keys() - found.keys()):
            self._lose(f"partitions are gone: {gone}")
        if behind := moved_back(start, found):
            self._lose(f"partitions end before what was read already: {behind}")

    def _lose(self, what: str) -> None:
        report_loss(what, fail=self._options.fail_on_data_loss)

    def _split(self, ranges: Sequence[OffsetRange]) -> list[OffsetRange]:
        return split_ranges(
            ranges,
            min_partitions=self._options.min_partitions,
            max_records_per_partition=self._options.max_records_per_partition,
        )


def report_loss(what: str, *, fail: bool) -> None:
    """Raise DataLossError, or log a warning."""
    if fail:
        raise DataLossError(
            f"{what}. Some data may have been lost; to go on without it, set failOnDataLoss to"
            " false"
        )
    log.warning("data loss, going on: %s", what)
