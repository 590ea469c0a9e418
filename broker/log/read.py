"""Reading a partition's log: by offset for Fetch, by time for ListOffsets.

A slice never extends beyond `max_offset` or the end of a segment, and it ends with a whole batch.
The first batch is returned whole, however large it is. Slices of at least `SENDFILE_BYTES` are
returned as regions of the file, smaller ones as bytes.
"""

from collections.abc import Iterator
from typing import NamedTuple

from broker.log.index.transaction_index import AbortedTransaction
from broker.log.local_log import LocalLog, inspect
from broker.log.segment import Segment
from broker.log.storage import FileRegion
from broker.log.walk import walk_batches
from broker.records.batch import RecordBatch
from broker.records.errors import CorruptBatch
from broker.records.header import HEADER_BYTES, read_header
from broker.records.record import Record
from common.kafka.errors import ErrorCode, KafkaError

SENDFILE_BYTES = 64 * 1024


class LogRead(NamedTuple):
    """A slice of the log; `parts` are in the order of the log."""

    parts: list[bytes | FileRegion]
    size_bytes: int
    aborted_transactions: list[AbortedTransaction]


class TimestampAndOffset(NamedTuple):
    """A record's timestamp, its offset, and the leader epoch that wrote it."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


def read(
    log: LocalLog,
    offset: int,
    max_bytes: int,
    max_offset: int,
    *,
    minimum_one_batch: bool = True,
    with_aborted_transactions: bool = False,
    is_replica: bool = False,
) -> LogRead:
    """Read from `offset` up to, not including, `max_offset`.

    Raise KafkaError(OFFSET_OUT_OF_RANGE), or CorruptBatch for unreadable batch headers.
    """
    if not log.log_start_offset <= offset <= log.log_end_offset:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Offset {offset} is outside [{log.log_start_offset}, {log.log_end_offset}]",
        )
    if offset >= max_offset:
        return LogRead([], 0, [])
    skips_empty_batches = log.append_limits.is_compacted and not is_replica
    found = _find_records(log, offset) if skips_empty_batches else _find(log, offset)
    if found is None:
        return LogRead([], 0, [])
    segment, start = found
    is_last = segment is log.segments.active
    if max_offset >= segment.next_offset and (not is_last or max_offset >= log.log_end_offset):
        limit = segment.size_bytes
    else:
        limit = segment.position_of(max_offset)
    if start >= limit:
        return LogRead([], 0, [])
    end, next_offset = segment.cut(start, max_bytes, limit, first_whole=minimum_one_batch)
    length = end - start
    if not length:
        return LogRead([], 0, [])
    part: bytes | FileRegion
    if length < SENDFILE_BYTES:
        part = segment.file.read(start, length)
    else:
        part = segment.slice(start, end)
    aborted: list[AbortedTransaction] = []
    if with_aborted_transactions:
        upper = next_offset if next_offset >= 0 else min(max_offset, segment.next_offset)
        aborted = aborted_between(log, offset, upper)
    return tuple.__new__(LogRead, ([part], length, aborted))


def _find(log: LocalLog, offset: int) -> tuple[Segment, int] | None:
    """Return the segment and position of the first batch whose last offset is at least `offset`."""
    segments = log.segments
    active = segments.active
    # Most readers read the end of the log.
    found = (active,) if offset >= active.base_offset else segments.from_offset(offset)
    for segment in found:
        if not segment.size_bytes:
            continue
        if segment is not active:
            segments.note_use(segment)
        if not segment.is_inspected:
            inspect(log, segment)
        position = segment.position_of(offset)
        if position < segment.size_bytes:
            return segment, position
    return None


def _find_records(log: LocalLog, offset: int) -> tuple[Segment, int] | None:
    """Do the same as `_find`, but skip the batches that the cleaner emptied.

    librdkafka treats an answer without any record as a too small limit, and gives up.
    """
    while (found := _find(log, offset)) is not None:
        segment, position = found
        header = read_header(segment.file.read(position, HEADER_BYTES))
        if header.record_count:
            return found
        offset = header.next_offset
    return None


def aborted_between(log: LocalLog, start: int, end: int) -> list[AbortedTransaction]:
    """Return the aborted transactions that overlap [start, end)."""
    aborted: list[AbortedTransaction] = []
    for segment in log.segments.from_offset(start):
        found, is_complete = segment.transaction_index.collect(start, end)
        aborted += found
        if is_complete:
            break
    return aborted


def offset_for_timestamp(log: LocalLog, timestamp_ms: int) -> TimestampAndOffset | None:
    """Return the first record whose timestamp is at least `timestamp_ms`."""
    for segment in log.segments:
        if not segment.is_inspected:
            inspect(log, segment)
        if not segment.size_bytes or segment.largest_timestamp_ms < timestamp_ms:
            continue
        log.segments.note_use(segment)
        position = segment.position_for_timestamp(timestamp_ms)
        for record, batch in _records_since(log, segment, position, timestamp_ms):
            if record.timestamp_ms >= timestamp_ms:
                return _answer(record, batch)
    return None


def max_timestamp(log: LocalLog) -> TimestampAndOffset | None:
    """Return the record with the largest timestamp, the first one of several (KIP-734)."""
    candidates = [segment for segment in log.segments if segment.size_bytes]
    for segment in candidates:
        if not segment.is_inspected:
            inspect(log, segment)
    if not candidates:
        return None
    segment = max(candidates, key=lambda segment: segment.largest_timestamp_ms)
    largest_ms = segment.largest_timestamp_ms
    position = segment.position_of(segment.max_timestamp_offset)
    for record, batch in _records_since(log, segment, position, largest_ms):
        if record.timestamp_ms == largest_ms:
            return _answer(record, batch)
    return None


def _records_since(
    log: LocalLog, segment: Segment, position: int, timestamp_ms: int
) -> Iterator[tuple[Record, RecordBatch]]:
    """Yield the records of batches that reach a timestamp, from the log start offset on."""
    start_offset = log.log_start_offset
    for where in segment.walk(position):
        if where.max_timestamp_ms < timestamp_ms or where.last_offset < start_offset:
            continue
        end = where.position + where.size_bytes
        for _, batch in walk_batches(segment.file, where.position, end):
            try:
                records = list(batch.records())
            except CorruptBatch:
                continue  # The append does not decode records: no consumer can read this batch.
            for record in records:
                if record.offset >= start_offset:
                    yield record, batch


def _answer(record: Record, batch: RecordBatch) -> TimestampAndOffset:
    epoch = batch.header.partition_leader_epoch
    return TimestampAndOffset(record.timestamp_ms, record.offset, epoch)
