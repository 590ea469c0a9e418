"""Opening a partition's directory, after a clean stop and after any other.

After a clean stop everything is as it was left, and only the tail of the last segment is looked
at. Otherwise every batch from the recovery point on is read and its CRC checked. What the crash
tore off is cut: the log ends before the first bad batch, with a warning that names offset and
bytes. A bad batch *below* the recovery point is no torn tail, for those bytes were on disk: it
raises `DamagedLog`, and the log directory goes offline.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from broker.log.cleaner.swap import finish_swaps
from broker.log.config import LogConfig
from broker.log.deletion import DELETED_EXTENSION
from broker.log.index.offset_index import MAX_RELATIVE_OFFSET
from broker.log.local_log import LogPlace
from broker.log.partition_log import PartitionLog
from broker.log.replay import load_producers
from broker.log.segment import LOG_SUFFIX, TRANSACTION_INDEX_SUFFIX, Segment
from broker.log.storage import remove_files
from broker.log.walk import place_of, walk_batches
from broker.model import TopicPartition
from broker.records.batch import RecordBatch
from broker.records.errors import CorruptBatch

_logger = logging.getLogger(__name__)


class DamagedLog(Exception):  # noqa: N818 - a storage failure, named like CorruptBatch
    """Records that were safely on disk cannot be read any more."""


@dataclass(frozen=True, slots=True)
class OpenHints:
    """What the checkpoints say about a partition; `None` where they say nothing."""

    is_clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    timestamp_ms: int = 0
    on_progress: Callable[[int], None] = lambda size_bytes: None
    """Told after every batch how many bytes of log have been read; twice when producers follow."""


def open_partition_log(
    topic_partition: TopicPartition,
    directory: str,
    config: LogConfig,
    place: LogPlace,
    hints: OpenHints,
) -> PartitionLog:
    """Open, and if need be recover, the log in a directory; raises DamagedLog."""
    log = PartitionLog(topic_partition, directory, config, place)
    names = _tidy(log, place.storage.names(directory))
    _find_segments(log, names, hints)
    log.producers.list_snapshots(names, [segment.base_offset for segment in log.segments])
    epochs_are_known = log.epochs.load()
    log.recovery_point = hints.recovery_point
    without_producers: set[int] = set()
    if not hints.is_clean or not epochs_are_known:
        without_producers = _recover(log, hints, everything=not epochs_are_known)
        # Nobody knows which names had been synced when the process died.
        log.has_new_names = log.has_new_directory = True
    active = log.segments.active
    active.activate(log.append_limits.index_interval_bytes)
    log.log_end_offset = max(active.next_offset, active.base_offset)
    log.log_start_offset = max(hints.log_start_offset, log.segments.first.base_offset)
    if log.log_start_offset > log.log_end_offset:
        # The records below the new start were lost with the crash; they were deleted anyway.
        log.truncate_fully_and_start_at(log.log_start_offset, hints.timestamp_ms)
    if log.log_end_offset < log.recovery_point:
        _logger.error(
            "records that had been synced are missing partition=%s log_end_offset=%d "
            "recovery_point=%d",
            topic_partition,
            log.log_end_offset,
            log.recovery_point,
        )
        log.recovery_point = log.log_end_offset
    log.epochs.truncate_from_end(log.log_end_offset)
    log.epochs.truncate_from_start(log.log_start_offset)
    log.high_watermark = min(max(hints.high_watermark, log.log_start_offset), log.log_end_offset)
    load_producers(log, hints.timestamp_ms, hints.on_progress, without_producers)
    log.producers.on_high_watermark(log.high_watermark)
    return log


def _tidy(log: PartitionLog, names: list[str]) -> list[str]:
    """Remove what was to be removed, complete what the cleaner had decided; gives what is left."""
    storage, directory = log.place.storage, log.directory
    doomed = [name for name in names if name.endswith((DELETED_EXTENSION, ".cleaned", ".tmp"))]
    remove_files(storage, [f"{directory}/{name}" for name in doomed])
    if any(name.endswith(".swap") for name in names):
        finish_swaps(storage, directory)
        return storage.names(directory)
    return names


def _find_segments(log: PartitionLog, names: list[str], hints: OpenHints) -> None:
    storage, directory = log.place.storage, log.directory
    bases = [int(name.removesuffix(LOG_SUFFIX)) for name in names if name.endswith(LOG_SUFFIX)]
    if not bases:
        log.add_segment(hints.log_start_offset, hints.timestamp_ms)
        return
    for place, base_offset in enumerate(bases):
        segment = Segment(storage, directory, base_offset, created_ms=hints.timestamp_ms)
        status = storage.status(segment.path(LOG_SUFFIX))
        assert status is not None, segment.path(LOG_SUFFIX)
        following = bases[place + 1] if place + 1 < len(bases) else base_offset
        segment.describe_closed(status.size_bytes, following)
        log.segments.add(segment)


def _recover(log: PartitionLog, hints: OpenHints, *, everything: bool) -> set[int]:
    """Check the segments from the recovery point on; cut at the first bad batch.

    Gives the base offsets of those in which no idempotent producer has written.
    """
    without_producers: set[int] = set()
    suspects = log.segments.from_offset(0 if everything else hints.recovery_point)
    # The transaction index of these is made anew, from producers as they were before them.
    log.producers.drop_snapshots_after(suspects[0].base_offset)
    for place, segment in enumerate(suspects):
        found_bytes = segment.size_bytes
        reason, has_producers = _recover_segment(log, segment, hints)
        if not has_producers:
            without_producers.add(segment.base_offset)
        following = suspects[place + 1 :]
        # A segment ends where the next begins, else its unsynced tail went with the power.
        is_short = (
            following and log.recovery_point <= segment.next_offset < following[0].base_offset
        )
        if segment.size_bytes < found_bytes or is_short:
            _cut_tail(log, suspects[place:], found_bytes, reason)
            break
    return without_producers


def _recover_segment(log: PartitionLog, segment: Segment, hints: OpenHints) -> tuple[str, bool]:
    """Rebuild a segment's indexes from its batches.

    Tells why it ends where it ends, and whether a batch in it has a producer id.
    """
    has_producers = False
    found_bytes = segment.size_bytes
    segment.reset()
    # Not even an empty file is known to be so on disk: what was cut off it might come back.
    segment.synced_bytes = -1
    segment.transaction_index.entries = []
    remove_files(log.place.storage, [segment.path(TRANSACTION_INDEX_SUFFIX)])
    reason = "the last batch is cut off"
    try:
        for position, batch in walk_batches(segment.file, 0, found_bytes):
            _validate_place(segment, batch)
            header = batch.header
            has_producers = has_producers or header.producer_id >= 0
            segment.note(place_of(batch, position), log.append_limits.index_interval_bytes)
            log.epochs.assign(header.partition_leader_epoch, header.base_offset)
            hints.on_progress(header.size_bytes)
    except CorruptBatch as error:
        reason = str(error)
    if segment is not log.segments.active:
        segment.close_indexes()
        segment.unload()
    return reason, has_producers


def _validate_place(segment: Segment, batch: RecordBatch) -> None:
    """Check offsets and CRC; the offsets themselves are not under the CRC."""
    if batch.base_offset < segment.next_offset or batch.header.last_offset_delta < 0:
        raise CorruptBatch(f"batch {batch.base_offset} comes after {segment.next_offset - 1}")
    if batch.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        raise CorruptBatch(f"offset {batch.last_offset} is in segment {segment.base_offset}")
    if not batch.has_valid_crc:
        raise CorruptBatch(f"batch {batch.base_offset} fails its CRC")


def _cut_tail(log: PartitionLog, suspects: list[Segment], found_bytes: int, reason: str) -> None:
    """End the log after the last good batch of the first of `suspects`."""
    segment, *following = suspects
    if segment.next_offset < log.recovery_point:
        raise DamagedLog(
            f"{segment.path(LOG_SUFFIX)} is damaged at byte {segment.size_bytes}, offset "
            f"{segment.next_offset}, below the recovery point {log.recovery_point}: {reason}"
        )
    _logger.warning(
        "torn tail cut off partition=%s file=%s offset=%d bytes=%d segments=%d reason=%s",
        log.topic_partition,
        segment.path(LOG_SUFFIX),
        segment.next_offset,
        found_bytes - segment.size_bytes + sum(x.size_bytes for x in following),
        len(following),
        reason,
    )
    # First what follows, then the cut: should this crash, the next start finds the cut again.
    log.remove_segments(following)
    segment.file.truncate(segment.size_bytes)
    segment.file.sync()
