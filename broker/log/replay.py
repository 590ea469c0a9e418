"""Bringing the producer state up to the log's end from the batches above its snapshot."""

from collections.abc import Callable, Collection

from broker.log.append import marker_of
from broker.log.local_log import LocalLog
from broker.log.segment import Segment
from broker.log.walk import walk_batches
from broker.records.batch import RecordBatch
from broker.records.header import HEADER_BYTES


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
    producers.load(log.log_start_offset, log.log_end_offset, timestamp_ms)
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
