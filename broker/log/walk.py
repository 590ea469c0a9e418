"""Walking a log file: by batch headers only, or by whole batches in large reads."""

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
_CHUNK_BYTES = 4096
_READ_AHEAD_BYTES = 1024 * 1024
_SMALLEST_LENGTH = HEADER_BYTES - LOG_OVERHEAD_BYTES


class BatchPosition(NamedTuple):
    """A batch in a file, with what the indexes need to know of it."""

    base_offset: int
    last_offset: int
    position: int
    size_bytes: int
    max_timestamp_ms: int
    """-1 also for a batch that the cleaner emptied: what is left of it has no time."""


def walk_headers(file: File, position: int, end: int) -> Iterator[BatchPosition]:
    """Give the whole batches between two positions; raises CorruptBatch for what is none.

    Small batches are read many at a time, large ones by their headers only.
    """
    chunk, chunk_position = b"", position
    while position + HEADER_BYTES <= end:
        at = position - chunk_position
        if at + _FIELDS_BYTES > len(chunk):
            wanted = min(_CHUNK_BYTES, end - position)
            chunk, chunk_position, at = file.read(position, wanted), position, 0
            if len(chunk) < _FIELDS_BYTES:
                return
        base_offset, length, magic, delta, timestamp_ms, count = _FIELDS.unpack_from(chunk, at)
        if length < _SMALLEST_LENGTH or magic != MAGIC or delta < 0:
            raise CorruptBatch(f"no batch at {position}: length {length}, magic {magic}")
        size_bytes = length + LOG_OVERHEAD_BYTES
        if position + size_bytes > end:
            return
        if not count:
            timestamp_ms = NO_TIMESTAMP
        yield BatchPosition(base_offset, base_offset + delta, position, size_bytes, timestamp_ms)
        position += size_bytes


def place_of(batch: RecordBatch, position: int) -> BatchPosition:
    """Tell the indexes' part of a batch that is at a position."""
    header = batch.header
    timestamp_ms = header.max_timestamp if header.record_count else NO_TIMESTAMP
    return BatchPosition(
        header.base_offset, header.last_offset, position, header.size_bytes, timestamp_ms
    )


def walk_batches(file: File, position: int, end: int) -> Iterator[tuple[int, RecordBatch]]:
    """Give (position, batch) for the whole batches between two positions, reading ahead.

    Stops before a batch that is cut off; raises CorruptBatch for what is none. CRCs are the
    caller's matter.
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
