"""Bringing the producer state up to the log's end from the batches above its snapshot."""

import logging
from collections.abc import Callable, Collection

from broker.log.append import marker_of
from broker.log.index.transaction_index import AbortedTransaction
from broker.log.local_log import LocalLog
from broker.log.segment import Segment
from broker.log.segment_names import TRANSACTION_INDEX_SUFFIX, bases_of
from broker.log.walk import walk_batches
from broker.records.batch import RecordBatch
from broker.records.errors import CorruptBatch
from broker.records.header import HEADER_BYTES

_logger = logging.getLogger(__name__)


def load_producers(
    log: LocalLog,
    timestamp_ms: int,
    on_progress: Callable[[int], None] = lambda size_bytes: None,
    without_producers: Collection[int] = (),
) -> None:
    """Start from the newest usable snapshot and feed what follows it.

    Segments whose base offset is in `without_producers` have nothing to feed, and are not read.
    """
    producers = log.producers
    producers.load(log.log_start_offset, log.log_end_offset, log.high_watermark, timestamp_ms)
    start = producers.map_end_offset
    for segment in log.segments.from_offset(start):
        if not segment.size_bytes or segment.base_offset in without_producers:
            continue
        position = segment.position_of(start)
        for _, batch in walk_batches(segment.file, position, segment.size_bytes):
            if batch.header.producer_id >= 0 and batch.header.record_count:
                _replay(log, segment, batch)
            on_progress(batch.header.size_bytes)
        if segment is not log.segments.active:
            if segment.transaction_index.entries:
                segment.save_transaction_index()
            segment.unload()
    producers.map_end_offset = log.log_end_offset
    producers.on_high_watermark(log.high_watermark)


def _replay(log: LocalLog, segment: Segment, batch: RecordBatch) -> None:
    header, producers = batch.header, log.producers
    if not header.is_control:
        producers.add_data(header, header.base_offset)
        return
    marker = marker_of(header, batch.buffer[HEADER_BYTES:])
    if marker is None:
        return
    aborted = producers.add_marker(header, marker, header.base_offset, header.max_timestamp)
    entries = segment.transaction_index.entries
    if aborted is not None and (not entries or entries[-1].last_offset < aborted.last_offset):
        segment.transaction_index.append(aborted)


def drop_damaged_transaction_indexes(log: LocalLog, names: list[str]) -> None:
    """Have those made anew that are damaged, when the producers are loaded next.

    With one that is wrong a reader would take what was aborted for committed. They are read at
    once and not when somebody asks: few segments have one, and they are small.
    """
    there = set(bases_of(names, TRANSACTION_INDEX_SUFFIX))
    for segment in log.segments:
        path = segment.path(TRANSACTION_INDEX_SUFFIX)
        # Those of recovered segments have gone already.
        if segment.base_offset not in there or log.place.storage.status(path) is None:
            continue
        if not _names_its_markers(segment):
            _logger.warning("index does not fit its log, made anew file=%s", path)
            segment.drop_transaction_index()
            log.producers.drop_snapshots_after(segment.base_offset)


def _names_its_markers(segment: Segment) -> bool:
    """Tell whether every entry is about the control batch that ended the transaction."""
    try:
        entries = segment.transaction_index.entries
        for entry in entries:
            position = segment.position_of(entry.last_offset)
            found = next(walk_batches(segment.file, position, segment.size_bytes), None)
            if found is None or not _is_end_of(entry, found[1]):
                return False
    except CorruptBatch:
        return False
    return bool(entries)


def _is_end_of(entry: AbortedTransaction, batch: RecordBatch) -> bool:
    header = batch.header
    ends_it = header.is_control and header.producer_id == entry.producer_id
    return ends_it and header.base_offset == entry.last_offset
