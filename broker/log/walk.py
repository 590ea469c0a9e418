"""Iterating over a log file: by batch headers only, or by whole batches in large reads."""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from broker.log.storage import File
from broker.records.batch import RecordBatch, batch_at
from broker.records.errors import CorruptBatch
from broker.records.header import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    OFFSET_AND_LENGTH,
)

_FIELDS = Struct(">qi4xb6xi8xq14xi")
"""Base offset, batch length, magic, last offset delta, max timestamp, record count."""
_FIELDS_BYTES = _FIELDS.size
_BASE_OFFSET = Struct(">q")
_MAGIC_POSITION = 16
_CHUNK_BYTES = 4096
_READ_AHEAD_BYTES = 1024 * 1024
_SMALLEST_LENGTH = HEADER_BYTES - LOG_OVERHEAD_BYTES


class BatchPosition(NamedTuple):
    """A batch in a file, with the values for the indexes."""

    base_offset: int
    last_offset: int
    position: int
    size_bytes: int
    max_timestamp_ms: int
    """-1 also for a batch that the cleaner emptied, whose header has no valid timestamp."""


def walk_headers(file: File, position: int, end: int) -> Iterator[BatchPosition]:
    """Yield the batches between two positions; raise CorruptBatch unless they fill the range.

    Several small batches are read at a time, and only the headers of large ones.
    """
    chunk, chunk_position, next_offset = b"", position, -1
    while position < end:
        at = position - chunk_position
        if at + _FIELDS_BYTES > len(chunk):
            wanted = min(_CHUNK_BYTES, end - position)
            chunk, chunk_position, at = file.read(position, wanted), position, 0
            if len(chunk) < _FIELDS_BYTES:
                raise CorruptBatch(f"the batch at byte {position} is cut off")
        base_offset, length, magic, delta, timestamp_ms, count = _FIELDS.unpack_from(chunk, at)
        if length < _SMALLEST_LENGTH or magic != MAGIC or delta < 0:
            raise CorruptBatch(f"no batch at byte {position}: length {length}, magic {magic}")
        if base_offset < next_offset:
            raise CorruptBatch(f"at byte {position} batch {base_offset} follows {next_offset - 1}")
        next_offset = base_offset + delta + 1
        size_bytes = length + LOG_OVERHEAD_BYTES
        if position + size_bytes > end:
            raise CorruptBatch(f"the batch at byte {position} is cut off")
        if not count:
            timestamp_ms = NO_TIMESTAMP
        # Without the call that a named tuple's own constructor is.
        yield tuple.__new__(
            BatchPosition, (base_offset, next_offset - 1, position, size_bytes, timestamp_ms)
        )
        position += size_bytes


def place_of(batch: RecordBatch, position: int) -> BatchPosition:
    """Return the index values of a batch at a position."""
    header = batch.header
    timestamp_ms = header.max_timestamp if header.record_count else NO_TIMESTAMP
    return BatchPosition(
        header.base_offset, header.last_offset, position, header.size_bytes, timestamp_ms
    )


def walk_batches(file: File, position: int, end: int) -> Iterator[tuple[int, RecordBatch]]:
    """Yield (position, batch) for the whole batches between two positions, reading ahead.

    Stop before an incomplete batch; raise CorruptBatch for bytes that are not a batch. The caller
    checks the CRCs.
    """
    chunk, chunk_position, wanted = b"", position, _READ_AHEAD_BYTES
    while position < end:
        batch = batch_at(chunk, position - chunk_position)
        if batch is None:
            chunk = file.read(position, min(wanted, end - position))
            chunk_position = position
            batch = batch_at(chunk)
        if batch is None:
            if len(chunk) < wanted or len(chunk) < LOG_OVERHEAD_BYTES:
                return
            _, length = OFFSET_AND_LENGTH.unpack_from(chunk)
            wanted = length + LOG_OVERHEAD_BYTES
            if wanted > end - position:
                return
            continue
        wanted = _READ_AHEAD_BYTES
        yield position, batch
        position += batch.header.size_bytes


def walk_intact(file: File, position: int, end: int) -> Iterator[BatchPosition]:
    """Do the same as `walk_headers`, and check every CRC; raise CorruptBatch for a bad one."""
    for start, batch in walk_batches(file, position, end):
        if not batch.has_valid_crc:
            raise CorruptBatch(f"batch {batch.base_offset} at byte {start} fails its CRC")
        yield place_of(batch, start)
        position = start + batch.header.size_bytes
    if position < end:
        raise CorruptBatch(f"the batch at byte {position} is cut off")


def has_batch_behind(file: File, position: int, end: int, offsets: range) -> bool:
    """Return True if an intact batch with a base offset in `offsets` follows a position.

    This distinguishes damage among records from an incomplete end.
    """
    while position < end:
        chunk = file.read(position, min(_READ_AHEAD_BYTES, end - position))
        # `find` looks for the magic byte, which is far rarer than positions.
        at = chunk.find(MAGIC, _MAGIC_POSITION)
        while at >= 0:
            start = position + at - _MAGIC_POSITION
            (base_offset,) = _BASE_OFFSET.unpack_from(chunk, at - _MAGIC_POSITION)
            if base_offset in offsets and _is_intact(file, start, end):
                return True
            at = chunk.find(MAGIC, at + 1)
        position += max(1, len(chunk) - _MAGIC_POSITION)
    return False


def _is_intact(file: File, position: int, end: int) -> bool:
    try:
        found = next(walk_batches(file, position, end), None)
    except CorruptBatch:
        return False
    return found is not None and found[1].has_valid_crc
