"""Opening a partition's directory, after a clean stop and after any other stop.

After a clean stop only the end of the last segment is read; if it is not as it was written, the
whole segment is. After any other stop, every batch from the recovery point on is read and its CRC
checked. An incomplete end is truncated: the log ends before the first bad batch, and a log line
names the offset and the bytes. A bad batch *below* the recovery point that is followed by intact
ones is damage: it raises `DamagedLog`, and the log directory goes offline.
"""

import logging
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from broker.log.checkpoints import LEADER_EPOCH_CHECKPOINT
from broker.log.cleaner.swap import SWAP_EXTENSION, finish_swaps
from broker.log.config import LogConfig
from broker.log.index.offset_index import MAX_RELATIVE_OFFSET
from broker.log.local_log import LogPlace
from broker.log.log_start import OpenHints, begin_log
from broker.log.names import (
    DELETED_EXTENSION,
    LOG_SUFFIX,
    NAME_DIGITS,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    Endings,
    bases_of,
    by_ending,
    is_base_offset,
    segment_path,
)
from broker.log.partition_log import PartitionLog
from broker.log.replay import drop_damaged_transaction_indexes, load_producers
from broker.log.segment import Segment
from broker.log.storage import remove_files
from broker.log.topic_settings import INT64_MAX
from broker.log.walk import has_batch_behind, place_of, walk_batches
from broker.model import TopicPartition
from broker.records.batch import RecordBatch
from broker.records.errors import CorruptBatch

_logger = logging.getLogger(__name__)


class DamagedLog(Exception):  # noqa: N818 - a storage failure, named like CorruptBatch
    """Records that were durable on disk cannot be read."""


class _Recovered(NamedTuple):
    """The segments that were read in full."""

    first_offset: int = INT64_MAX
    """All segments from this offset on were read in full."""
    without_producers: AbstractSet[int] = frozenset()
    """The base offsets of those in which no idempotent producer has written."""


def open_partition_log(
    topic_partition: TopicPartition,
    directory: str,
    config: LogConfig,
    place: LogPlace,
    hints: OpenHints,
) -> PartitionLog:
    """Open the log in a directory, and recover it if necessary; raise DamagedLog."""
    log = PartitionLog(topic_partition, directory, config, place)
    endings = _tidy(log)
    _find_segments(log, endings, hints)
    log.producers.list_snapshots(endings, [segment.base_offset for segment in log.segments])
    log.recovery_point = hints.recovery_point
    epochs_are_known = _load_epochs(log, hints)
    first_epoch_offset = log.epochs.entries[0].offset if log.epochs.entries else None
    recovered = _read_what_is_suspect(log, hints, epochs_are_known=epochs_are_known)
    active = log.segments.active
    log.log_end_offset = max(active.next_offset, active.base_offset)
    if log.log_end_offset < log.recovery_point:
        _logger.error(
            "records that had been synced are missing file=%s log_end_offset=%d recovery_point=%d: "
            "the log goes on at its end",
            active.path(LOG_SUFFIX),
            log.log_end_offset,
            log.recovery_point,
        )
        log.recovery_point = log.log_end_offset
    elif log.log_end_offset < hints.high_watermark:
        _logger.warning(
            "committed records that had not been synced are missing file=%s log_end_offset=%d "
            "high_watermark=%d: the log goes on at its end",
            active.path(LOG_SUFFIX),
            log.log_end_offset,
            hints.high_watermark,
        )
    begin_log(log, hints, first_epoch_offset)
    log.epochs.truncate_from_end(log.log_end_offset)
    log.epochs.truncate_from_start(log.log_start_offset)
    log.high_watermark = min(max(hints.high_watermark, log.log_start_offset), log.log_end_offset)
    drop_damaged_transaction_indexes(log, endings, recovered.first_offset)
    load_producers(log, hints.timestamp_ms, hints.on_progress, recovered.without_producers)
    return log


def _load_epochs(log: PartitionLog, hints: OpenHints) -> bool:
    """Read the leader epochs; return False if they must be rebuilt from the log."""
    if not log.epochs.load():
        return False
    is_lost = not log.epochs.entries and log.size_bytes and hints.recovery_point
    if is_lost:
        path = f"{log.directory}/{LEADER_EPOCH_CHECKPOINT}"
        _logger.warning("leader epochs are missing and rebuilt from the log path=%s", path)
    return not is_lost


def _read_what_is_suspect(
    log: PartitionLog, hints: OpenHints, *, epochs_are_known: bool
) -> _Recovered:
    """Recover the segments that the last stop may have left incomplete."""
    active = log.segments.active
    if hints.is_clean and epochs_are_known:
        try:
            active.activate(log.append_limits.index_interval_bytes)
        except CorruptBatch as error:
            _logger.warning(
                "changed since the clean stop, recovered file=%s reason=%s",
                active.path(LOG_SUFFIX),
                error,
            )
            return _recover(log, hints, [active])
        return _Recovered()
    suspects = log.segments.from_offset(hints.recovery_point if epochs_are_known else 0)
    # It is unknown which names were synced when the process died.
    log.has_new_names = log.has_new_directory = True
    return _recover(log, hints, suspects)


def _tidy(log: PartitionLog) -> Endings:
    """Remove files that were marked for removal, complete swaps; return the remaining names."""
    storage, directory = log.place.storage, log.directory
    endings = by_ending(storage.names(directory))
    has_swaps = any(ending.endswith(SWAP_EXTENSION) for ending in endings)
    if has_swaps:
        # Swaps come first: a damaged one can be repaired with the files that are removed below.
        finish_swaps(storage, directory)
    for ending in [x for x in endings if x.endswith((DELETED_EXTENSION, ".cleaned", ".tmp"))]:
        remove_files(storage, [f"{directory}/{text}{ending}" for text in endings.pop(ending)])
    return by_ending(storage.names(directory)) if has_swaps else endings


def _find_segments(log: PartitionLog, endings: Endings, hints: OpenHints) -> None:
    storage, directory = log.place.storage, log.directory
    bases = bases_of(endings, LOG_SUFFIX)
    _name_what_is_odd(log, endings, bases)
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
        if not status.size_bytes and following > base_offset and _was_longer(log, segment):
            _logger.error(
                "records are missing file=%s offset=%d next_segment=%d: the file is empty",
                segment.path(LOG_SUFFIX),
                base_offset,
                following,
            )


def _was_longer(log: PartitionLog, segment: Segment) -> bool:
    """Return True if an empty segment once had records: the cleaner may have removed them all."""
    times = log.place.storage.status(segment.path(TIME_INDEX_SUFFIX))
    return not log.config.is_compacted or (times is not None and times.size_bytes > 0)


def _name_what_is_odd(log: PartitionLog, endings: Endings, bases: list[int]) -> None:
    """Log the files that belong to no segment, and the segments that have only indexes left."""
    directory, known = log.directory, {f"{base:0{NAME_DIGITS}d}" for base in bases}
    orphans: set[str] = set()
    for suffix in SUFFIXES:
        for text in sorted(set(endings.get(suffix, ())) - known):
            if is_base_offset(text):
                orphans.add(text)
            else:
                _logger.warning("not a segment, left alone file=%s/%s%s", directory, text, suffix)
    for text in sorted(orphans):
        path = segment_path(directory, int(text), LOG_SUFFIX)
        _logger.error("records are missing: %s is not there, its index is", path)


def _recover(log: PartitionLog, hints: OpenHints, suspects: list[Segment]) -> _Recovered:
    """Check the suspect segments, with the last one; truncate at the first bad batch."""
    without_producers: set[int] = set()
    # Their transaction indexes are rebuilt from the producer state before them.
    log.producers.drop_snapshots_after(suspects[0].base_offset)
    for place, segment in enumerate(suspects):
        found_bytes = segment.size_bytes
        reason, has_producers = _recover_segment(log, segment, hints)
        if not has_producers:
            without_producers.add(segment.base_offset)
        following = suspects[place + 1 :]
        # A segment ends where the next one starts; otherwise a power failure lost its unsynced end.
        is_short = (
            following and log.recovery_point <= segment.next_offset < following[0].base_offset
        )
        if segment.size_bytes < found_bytes or is_short:
            _cut_tail(log, suspects[place:], found_bytes, reason)
            break
    return _Recovered(suspects[0].base_offset, without_producers)


def _recover_segment(log: PartitionLog, segment: Segment, hints: OpenHints) -> tuple[str, bool]:
    """Rebuild a segment's indexes from its batches.

    Return the reason for its end, and True if one of its batches has a producer id.
    """
    has_producers = False
    found_bytes = segment.size_bytes
    segment.reset()
    # Even the size of an empty file may not be on disk: a truncated end could come back.
    segment.synced_bytes = -1
    segment.drop_transaction_index()
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
    segment.is_inspected = True
    if segment is not log.segments.active:
        segment.close_indexes()
        segment.unload()
    return reason, has_producers


def _validate_place(segment: Segment, batch: RecordBatch) -> None:
    """Check offsets and CRC; the CRC does not cover the base offset."""
    if batch.base_offset < segment.next_offset or batch.header.last_offset_delta < 0:
        raise CorruptBatch(f"batch {batch.base_offset} comes after {segment.next_offset - 1}")
    if batch.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        raise CorruptBatch(f"offset {batch.last_offset} is in segment {segment.base_offset}")
    if not batch.has_valid_crc:
        raise CorruptBatch(f"batch {batch.base_offset} fails its CRC")


def _cut_tail(log: PartitionLog, suspects: list[Segment], found_bytes: int, reason: str) -> None:
    """Truncate the log after the last good batch of the first suspect; raise DamagedLog."""
    segment, *following = suspects
    end = segment.size_bytes
    lost = range(segment.next_offset, log.recovery_point)
    if lost and (following or has_batch_behind(segment.file, end, found_bytes, lost)):
        raise DamagedLog(
            f"{segment.path(LOG_SUFFIX)} is damaged at byte {end}, offset "
            f"{segment.next_offset}, below the recovery point {log.recovery_point}: {reason}; "
            "restore the file, or move its directory away, and start again"
        )
    _logger.log(
        logging.ERROR if lost else logging.WARNING,
        "torn tail cut off partition=%s file=%s offset=%d bytes=%d segments=%d reason=%s",
        log.topic_partition,
        segment.path(LOG_SUFFIX),
        segment.next_offset,
        found_bytes - segment.size_bytes + sum(x.size_bytes for x in following),
        len(following),
        reason,
    )
    # The following segments are removed first: after a crash in between, the next start finds the
    # bad batch again.
    log.remove_segments(following)
    segment.file.truncate(segment.size_bytes)
    segment.file.sync()
