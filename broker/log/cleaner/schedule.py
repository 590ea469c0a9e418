"""Which log the cleaner takes next, and up to which offset.

It never takes the active segment, nor offsets above the last stable offset, nor records younger
than `min.compaction.lag.ms`. A log is worth a round if more than `min.cleanable.dirty.ratio` of its
cleanable bytes are dirty, or if a record waits longer than `max.compaction.lag.ms`.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from broker.log.partition_log import PartitionLog
from broker.log.segment import Segment
from broker.model import TopicPartition
from broker.records.header import NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class DirtyLog:
    """A compacted log and the range of offsets of its next round: [first, end)."""

    log: PartitionLog
    first_dirty_offset: int
    end_offset: int
    dirty_ratio: float
    is_overdue: bool

    @property
    def is_worth_cleaning(self) -> bool:
        """True if a round should start."""
        if self.end_offset <= self.first_dirty_offset:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def measure(log: PartitionLog, timestamp_ms: int) -> DirtyLog:
    """Compute the range and the dirty ratio of a log's next round."""
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
    # A round cleans whole segments, so it ends before the first segment that it may not take.
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
    """Return the log that most needs a round, without the `busy` ones; None if none needs one."""
    candidates = [
        measure(log, timestamp_ms)
        for log in logs
        if log.config.is_compacted and not log.is_uncleanable
        if len(log.segments) > 1 and log.topic_partition not in busy
    ]
    worthy = [candidate for candidate in candidates if candidate.is_worth_cleaning]
    return max(worthy, key=lambda x: (x.is_overdue, x.dirty_ratio), default=None)
