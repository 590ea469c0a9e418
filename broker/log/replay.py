"""Bringing the producer state up to the log's end, from the batches above its snapshot."""

import logging
from collections.abc import Callable, Collection, Iterator
from zlib import crc32

from broker.log.append import marker_of
from broker.log.checkpoints import read_index_sums
from broker.log.index.transaction_index import AbortedTransaction
from broker.log.local_log import LocalLog
from broker.log.names import LOG_SUFFIX, TRANSACTION_INDEX_SUFFIX, Endings, bases_of
from broker.log.producers.state import ProducerState
from broker.log.segment import Segment
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
    """Load the newest usable snapshot, and add the batches after it.

    Segments whose base offset is in `without_producers` have no producers and are not read.
    """
    producers, first_offset = log.producers, log.segments.first.base_offset
    # Start at the first segment and not at the log start offset: a producer that wrote below that
    # offset continues with its next sequence number.
    producers.load(first_offset, log.log_end_offset, timestamp_ms)
    start = producers.map_end_offset
    if start > log.high_watermark and producers.has_ended_transactions:
        producers.unreplicated = _ended_above_high_watermark(
            log, start, on_progress, without_producers
        )
    for segment in log.segments.from_offset(start):
        if segment.base_offset > start and producers.producers:
            # As a roll does: the snapshot keeps producers whose records are deleted later.
            producers.map_end_offset = segment.base_offset
            producers.take_snapshot()
        if segment.base_offset not in without_producers:
            _replay_segment(log, segment, start, on_progress)
    producers.map_end_offset = log.log_end_offset
    producers.on_high_watermark(log.high_watermark)


def _replay_segment(
    log: LocalLog, segment: Segment, start: int, on_progress: Callable[[int], None]
) -> None:
    for batch in _batches(segment, range(start, log.log_end_offset)):
        aborted = _replay(log.producers, batch)
        if aborted is not None:
            _note_aborted(segment, aborted)
        on_progress(batch.header.size_bytes)
    if segment is not log.segments.active:
        if segment.transaction_index.entries:
            segment.save_transaction_index()
        segment.unload()


def _ended_above_high_watermark(
    log: LocalLog,
    end_offset: int,
    on_progress: Callable[[int], None],
    without_producers: Collection[int],
) -> dict[int, int]:
    """Return the transactions that ended between the high watermark and the snapshot.

    A snapshot does not have them. They are read with a separate producer state from an earlier
    snapshot, because the state of the later one may have batches that are not in the log.
    """
    former = log.producers.at_snapshot_within(log.segments.first.base_offset, log.high_watermark)
    offsets = range(former.map_end_offset, end_offset)
    for segment in log.segments.from_offset(offsets.start):
        if segment.base_offset >= end_offset or segment.base_offset in without_producers:
            continue
        for batch in _batches(segment, offsets):
            _replay(former, batch)
            on_progress(batch.header.size_bytes)
        if segment is not log.segments.active:
            segment.unload()
    former.on_high_watermark(log.high_watermark)
    return former.unreplicated


def _batches(segment: Segment, offsets: range) -> Iterator[RecordBatch]:
    """Yield the batches of a segment in a range of offsets."""
    if not segment.size_bytes or not offsets:
        return
    try:
        position = segment.position_of(offsets.start)
        for _, batch in walk_batches(segment.file, position, segment.size_bytes):
            if batch.base_offset >= offsets.stop:
                return
            yield batch
    except CorruptBatch as error:
        raise CorruptBatch(f"{segment.path(LOG_SUFFIX)}: {error}") from error


def _replay(producers: ProducerState, batch: RecordBatch) -> AbortedTransaction | None:
    """Add one batch; return the entry for the transaction index, if any."""
    header = batch.header
    if header.producer_id < 0 or not header.record_count:
        return None
    if not header.is_control:
        producers.add_data(header, header.base_offset)
        return None
    marker = marker_of(header, batch.buffer[HEADER_BYTES:])
    if marker is None:
        return None
    return producers.add_marker(header, marker, header.base_offset, header.max_timestamp)


def _note_aborted(segment: Segment, aborted: AbortedTransaction) -> None:
    entries = segment.transaction_index.entries
    if not entries or entries[-1].last_offset < aborted.last_offset:
        segment.transaction_index.append(aborted)


def drop_damaged_transaction_indexes(log: LocalLog, endings: Endings, end_offset: int) -> None:
    """Drop damaged or lost transaction indexes, so that loading the producers rebuilds them.

    With a wrong index a reader would take aborted records for committed ones. The indexes are
    checked at the start and not at their first use, because few segments have one and they are
    small. Segments from `end_offset` on are recovered and their indexes already dropped.
    """
    sums = log.transaction_index_sums = read_index_sums(log.place.storage, log.directory)
    wanted = set(bases_of(endings, TRANSACTION_INDEX_SUFFIX)) | sums.keys()
    for segment in log.segments if wanted else ():
        base_offset = segment.base_offset
        if base_offset not in wanted or base_offset >= end_offset:
            continue
        if not _names_its_markers(segment, sums.get(base_offset)):
            path = segment.path(TRANSACTION_INDEX_SUFFIX)
            _logger.warning("index does not match its log, rebuilt file=%s", path)
            segment.drop_transaction_index()
            log.producers.drop_snapshots_after(base_offset)


def _names_its_markers(segment: Segment, crc: int | None) -> bool:
    """Return True if every entry matches its marker, and the checksum matches if it is known."""
    try:
        entries = segment.transaction_index.entries
        segment.transaction_index_crc = crc32(segment.transaction_index.to_bytes())
        if crc not in {None, segment.transaction_index_crc}:
            return False
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
