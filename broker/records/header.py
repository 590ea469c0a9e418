"""The header of a record batch, magic 2, as Kafka writes it since 0.11 (KIP-98).

    offset  bytes  field
    0       8      base_offset             not under the CRC: the leader assigns it
    8       4      batch_length            bytes after this field
    12      4      partition_leader_epoch  not under the CRC: the leader assigns it
    16      1      magic                   2
    17      4      crc                     CRC-32C of everything from byte 21 on
    21      2      attributes              codec, timestamp type, flags: see below
    23      4      last_offset_delta
    27      8      base_timestamp          of the first record, or the delete horizon (KIP-534)
    35      8      max_timestamp
    43      8      producer_id
    51      2      producer_epoch
    53      4      base_sequence
    57      4      record_count
    61             the records, compressed as one block when a codec is set

The CRC does not cover base offset and leader epoch, so that a leader can assign them without
reading the records.
"""

from struct import Struct
from typing import NamedTuple, TypeAlias

BytesLike: TypeAlias = bytes | bytearray | memoryview

HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
"""The size of the header, and the smallest size of a batch."""

OFFSET_AND_LENGTH = Struct(">qi")
LOG_OVERHEAD_BYTES = OFFSET_AND_LENGTH.size
"""The bytes that `batch_length` does not count."""

PATCH = Struct(">qii")
"""Base offset, batch length and leader epoch: the 16 bytes that a leader writes."""

MAGIC = 2
ATTRIBUTES_POSITION = 21

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


class BatchHeader(NamedTuple):
    """The thirteen fields of the header, in their order on disk."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        """The offset of the last record, inclusive; compaction may have removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after this batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size_bytes(self) -> int:
        """The size of the whole batch."""
        return self.batch_length + LOG_OVERHEAD_BYTES

    @property
    def codec(self) -> int:
        """The number of the compression codec, 0 for none."""
        return self.attributes & CODEC_MASK

    @property
    def uses_log_append_time(self) -> bool:
        """True if every record has `max_timestamp` as its timestamp."""
        return bool(self.attributes & LOG_APPEND_TIME_FLAG)

    @property
    def is_transactional(self) -> bool:
        """True if the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        """True if the records are control records."""
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the cleaner may remove the batch's tombstones (KIP-534); the cleaner sets it."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; numbers wrap to 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & INT32_MAX


def increment_sequence(sequence: int, by: int) -> int:
    """Add to a sequence number, which has 31 bits and wraps to 0."""
    return (sequence + by) & INT32_MAX


def read_header(buffer: BytesLike, position: int = 0) -> BatchHeader:
    """Decode the header at `position`; the caller has checked that 61 bytes are available."""
    # This is `_make` without its call and its check of the number of fields.
    return tuple.__new__(BatchHeader, HEADER.unpack_from(buffer, position))
