"""A record batch as a view over its bytes, without copying or decoding."""

from collections.abc import Iterator
from dataclasses import dataclass

from crc32c import crc32c

from broker.records.compression import decompress
from broker.records.errors import CorruptBatch
from broker.records.header import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    OFFSET_AND_LENGTH,
    BatchHeader,
    BytesLike,
    read_header,
)
from broker.records.record import Record, parse_records


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """One batch: its header, and `buffer` with exactly its bytes."""

    header: BatchHeader
    buffer: memoryview

    @property
    def base_offset(self) -> int:
        """The offset of the first appended record, which compaction may have removed."""
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        """The offset of the last appended record, inclusive, which compaction may have removed."""
        return self.header.last_offset

    @property
    def next_offset(self) -> int:
        """The offset after this batch."""
        return self.header.next_offset

    @property
    def has_valid_crc(self) -> bool:
        """True if the CRC matches the bytes that it covers."""
        return crc32c(self.buffer[ATTRIBUTES_POSITION:]) == self.header.crc

    def payload(self) -> BytesLike:
        """Return the encoded records, decompressed; raise CorruptBatch, also above a size limit."""
        payload = self.buffer[HEADER_BYTES:]
        return decompress(self.header.codec, payload) if self.header.codec else payload

    def records(self) -> Iterator[Record]:
        """Yield the decoded records; raise CorruptBatch if they do not match the header."""
        return parse_records(self.payload(), self.header)


def batch_at(buffer: BytesLike, position: int = 0) -> RecordBatch | None:
    """Return the batch at `position`, None if it is incomplete.

    Raise CorruptBatch if the bytes cannot be a batch.
    """
    view = memoryview(buffer)
    remaining = len(view) - position
    if remaining < LOG_OVERHEAD_BYTES:
        return None
    _, batch_length = OFFSET_AND_LENGTH.unpack_from(view, position)
    if batch_length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
        raise CorruptBatch(f"batch length {batch_length} is smaller than a header")
    if remaining < batch_length + LOG_OVERHEAD_BYTES:
        return None
    header = read_header(view, position)
    if header.magic != MAGIC:
        raise CorruptBatch(f"magic {header.magic} is not {MAGIC}")
    return RecordBatch(header, view[position : position + header.size_bytes])


def split_batches(buffer: BytesLike) -> Iterator[RecordBatch]:
    """Yield the batches of a buffer, without an incomplete last one."""
    position = 0
    while (batch := batch_at(buffer, position)) is not None:
        yield batch
        position += batch.header.size_bytes
