"""Which log the cleaner takes next, and how far it may go in it (pure decisions).

Never the active segment, nothing above the last stable offset, and nothing younger than
`min.compaction.lag.ms`. A log is worth a round when more than `min.cleanable.dirty.ratio` of what
can be cleaned is dirty, or when a record in it waits longer than `max.compaction.lag.ms`.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from broker.log.partition_log import PartitionLog
from broker.log.segment import Segment
from broker.model import TopicPartition
from broker.records.header import NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class DirtyLog:
    """A compacted log and the range of offsets a round would take: [first, end)."""

    log: PartitionLog
    first_dirty_offset: int
    end_offset: int
    dirty_ratio: float
    is_overdue: bool

    @property
    def is_worth_cleaning(self) -> bool:
        """Whether a round should begin."""
        if self.end_offset <= self.first_dirty_offset:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def measure(log: PartitionLog, timestamp_ms: int) -> DirtyLog:
    """Work out what the cleaner could do in a log."""
    first_dirty = log.first_dirty_offset
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    closed = [segment for segment in log.segments if segment is not log.segments.active]
    dirty = [segment for segment in closed if segment.next_offset > first_dirty]
    limit = min(log.last_stable_offset, log.segments.active.base_offset)
    youngest_ms = timestamp_ms - log.config.min_compaction_lag_ms
    if log.config.min_compaction_lag_ms > 0:
        young = (x.base_offset for x in dirty if x.largest_timestamp_ms > youngest_ms)
        limit = min(limit, next(young, limit))
    # Segments are cleaned whole: the round ends where the first one begins that may not be.
    end_offset = max(
        (segment.next_offset for segment in closed if segment.next_offset <= limit),
        default=first_dirty,
    )
    clean_bytes = sum(x.size_bytes for x in closed if x.next_offset <= first_dirty)
    dirty_bytes = sum(x.size_bytes for x in dirty if x.next_offset <= end_offset)
    total_bytes = clean_bytes + dirty_bytes
    ratio = dirty_bytes / total_bytes if total_bytes else 0.0
    is_overdue = dirty_bytes > 0 and _is_overdue(log, dirty, timestamp_ms)
    return DirtyLog(log, first_dirty, max(first_dirty, end_offset), ratio, is_overdue)


def _is_overdue(log: PartitionLog, dirty: list[Segment], timestamp_ms: int) -> bool:
    latest_ms = timestamp_ms - log.config.max_compaction_lag_ms
    if latest_ms <= 0:
        return False
    first_stamps = [stamp for segment in dirty if (stamp := _first_timestamp_ms(segment)) > 0]
    return min(first_stamps, default=latest_ms) < latest_ms


def _first_timestamp_ms(segment: Segment) -> int:
    for batch in segment.walk():
        return batch.max_timestamp_ms
    return NO_TIMESTAMP


def choose_dirtiest(
    logs: Iterable[PartitionLog], busy: Container[TopicPartition], timestamp_ms: int
) -> DirtyLog | None:
    """Give the log that needs a round most, leaving out those that are being cleaned."""
    candidates = [
        measure(log, timestamp_ms)
        for log in logs
        if log.config.is_compacted and not log.is_uncleanable
        if len(log.segments) > 1 and log.topic_partition not in busy
    ]
    worthy = [candidate for candidate in candidates if candidate.is_worth_cleaning]
    return max(worthy, key=lambda x: (x.is_overdue, x.dirty_ratio), default=None)
