"""A record batch as a view over the bytes it came in; nothing is copied and nothing decoded."""

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
    """One batch: its header, and `buffer`, the bytes of exactly this batch."""

    header: BatchHeader
    buffer: memoryview

    @property
    def base_offset(self) -> int:
        """The offset of the first record as it was appended."""
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        """The offset of the last record as it was appended, inclusive."""
        return self.header.last_offset

    @property
    def next_offset(self) -> int:
        """The offset after this batch."""
        return self.header.next_offset

    @property
    def has_valid_crc(self) -> bool:
        """Whether the bytes under the CRC are those the writer wrote."""
        return crc32c(self.buffer[ATTRIBUTES_POSITION:]) == self.header.crc

    def payload(self) -> BytesLike:
        """The encoded records, decompressed; raises CorruptBatch, also for a bomb."""
        payload = self.buffer[HEADER_BYTES:]
        return decompress(self.header.codec, payload) if self.header.codec else payload

    def records(self) -> Iterator[Record]:
        """Decode the records; raises CorruptBatch when they are not what the header says."""
        return parse_records(self.payload(), self.header)


def batch_at(buffer: BytesLike, position: int = 0) -> RecordBatch | None:
    """Give the batch at `position`, or None when its bytes end before it does.

    Raises CorruptBatch when what is there cannot be a batch.
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
    """Walk the batches of a buffer; an incomplete last one is left out, as readers do."""
    position = 0
    while (batch := batch_at(buffer, position)) is not None:
        yield batch
        position += batch.header.size_bytes


def records_of(batch: RecordBatch) -> Iterator[Record]:
    """Decode the records of one batch."""
    return batch.records()
