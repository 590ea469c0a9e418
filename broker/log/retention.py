"""Which segments may be deleted: too old, above the size limit, or below the log start offset.

This file only decides; `PartitionLog.delete_old_segments` acts. Segments are deleted from the
oldest on, and only below the high watermark, so that uncommitted records are never deleted.
"""

from itertools import takewhile

from broker.log.local_log import LocalLog, inspect
from broker.log.names import LOG_SUFFIX
from broker.log.segment import Segment
from broker.records.header import NO_TIMESTAMP


def expired_segments(log: LocalLog, timestamp_ms: int) -> list[Segment]:
    """Return the segments to delete, the oldest first."""
    if not _may_go(log, log.segments.first, timestamp_ms):
        return []
    candidates = _committed_segments(log)
    count = len(_below_start(log, candidates))
    if log.config.is_deleted:
        count = max(count, len(_too_old(log, candidates, timestamp_ms)), _too_many(log, candidates))
    expired = candidates[:count]
    # Deleting the empty active segment of an empty log would gain nothing.
    return [
        segment for segment in expired if segment.size_bytes or segment is not log.segments.active
    ]


def _may_go(log: LocalLog, first: Segment, timestamp_ms: int) -> bool:
    """Return False quickly, the usual answer, if even the first segment must stay."""
    config, is_last = log.config, first is log.segments.active
    end = log.log_end_offset if is_last else log.segments[1].base_offset
    if end > log.high_watermark or (not first.size_bytes and is_last):
        return False
    if not is_last and end <= log.log_start_offset:
        return True
    is_too_old = 0 <= config.retention_ms < timestamp_ms - _age_base_ms(log, first)
    is_too_much = 0 <= config.retention_bytes <= log.size_bytes - first.size_bytes
    return is_too_old or is_too_much


def _committed_segments(log: LocalLog) -> list[Segment]:
    """Return the segments that end at or below the high watermark."""
    segments = list(log.segments)
    ends = [segment.base_offset for segment in segments[1:]] + [log.log_end_offset]
    return [
        segment for segment, end in zip(segments, ends, strict=True) if end <= log.high_watermark
    ]


def _below_start(log: LocalLog, candidates: list[Segment]) -> list[Segment]:
    bases = [segment.base_offset for segment in log.segments][1:]
    return [
        segment
        for segment, following in zip(candidates, bases, strict=False)
        if following <= log.log_start_offset
    ]


def _too_old(log: LocalLog, candidates: list[Segment], timestamp_ms: int) -> list[Segment]:
    limit_ms = log.config.retention_ms
    if limit_ms < 0:
        return []
    return list(takewhile(lambda x: timestamp_ms - _age_base_ms(log, x) > limit_ms, candidates))


def _age_base_ms(log: LocalLog, segment: Segment) -> int:
    """Return the start of a segment's age: its largest timestamp, else the file's time."""
    if not segment.size_bytes:
        return segment.created_ms
    if not segment.is_inspected:
        inspect(log, segment)
    if segment.largest_timestamp_ms != NO_TIMESTAMP:
        return segment.largest_timestamp_ms
    status = log.place.storage.status(segment.path(LOG_SUFFIX))
    return status.modified_ms if status is not None else segment.created_ms


def _too_many(log: LocalLog, candidates: list[Segment]) -> int:
    """Count the segments to delete while the log stays at or above `retention.bytes`."""
    limit_bytes = log.config.retention_bytes
    if limit_bytes < 0:
        return 0
    excess, count = log.size_bytes - limit_bytes, 0
    for segment in candidates:
        if excess < segment.size_bytes:
            break
        excess -= segment.size_bytes
        count += 1
    return count
