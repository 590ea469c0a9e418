"""Building record batches, for the coordinators, the cleaner, recompression, and tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

from crc32c import crc32c

from broker.records.compression import DEFAULT_LEVEL, compress
from broker.records.header import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    BytesLike,
)
from broker.records.record import NewRecord, RawRecord, Record, encode_record

_UNDER_CRC = Struct(">hiqqqhii")
"""The header from the attributes on, without records."""


@dataclass(frozen=True, slots=True)
class BatchFields:
    """The header fields of a new batch."""

    base_offset: int = 0
    last_offset: int = -1
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    base_sequence: int = NO_SEQUENCE
    leader_epoch: int = NO_LEADER_EPOCH
    attributes: int = 0
    """All flags without the codec, which the codec argument sets."""
    max_timestamp: int | None = None
    """Set for log append time; None takes the largest timestamp of the records."""
    delete_horizon_ms: int | None = None


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_LEADER_EPOCH,
    is_transactional: bool = False,
    is_control: bool = False,
    compression: int = 0,
) -> bytes:
    """Build one batch of `(key, value, headers, timestamp_ms)` with consecutive offsets."""
    assert records, "a batch has at least one record"
    flags = (TRANSACTIONAL_FLAG if is_transactional else 0) | (CONTROL_FLAG if is_control else 0)
    fields = BatchFields(
        base_offset=base_offset,
        last_offset=base_offset + len(records) - 1,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        leader_epoch=leader_epoch,
        attributes=flags,
    )
    numbered = [
        Record(offset, timestamp_ms, key, value, headers)
        for offset, (key, value, headers, timestamp_ms) in enumerate(records, base_offset)
    ]
    return encode_batch(numbered, fields, compression)


def batch_of_encoded(payload: BytesLike, *, record_count: int, timestamp_ms: int) -> bytes:
    """Build one batch of encoded records with the offsets 0, 1, ... and one timestamp for all."""
    assert record_count, "a batch has at least one record"
    fields = BatchFields(last_offset=record_count - 1)
    return _assemble(fields, 0, (timestamp_ms, timestamp_ms, record_count), bytes(payload))


def encode_batch(
    records: Sequence[Record], fields: BatchFields, codec: int = 0, level: int = DEFAULT_LEVEL
) -> bytes:
    """Build one batch of records with their given offsets, which may have gaps."""
    base_timestamp = _base_timestamp(records, fields)
    payload = b"".join(
        encode_record(
            record.offset - fields.base_offset,
            record.timestamp_ms - base_timestamp,
            record.key,
            record.value,
            record.headers,
        )
        for record in records
    )
    max_timestamp = fields.max_timestamp
    if max_timestamp is None:
        max_timestamp = max((record.timestamp_ms for record in records), default=NO_TIMESTAMP)
    if codec:
        payload = compress(codec, payload, level)
    return _assemble(fields, codec, (base_timestamp, max_timestamp, len(records)), payload)


def replace_payload(header: BatchHeader, payload: BytesLike, codec: int, level: int) -> bytes:
    """Build a batch like `header` with the same encoded records and another codec."""
    fields = _fields_of(header, header.attributes & ~CODEC_MASK)
    stamps = (header.base_timestamp, header.max_timestamp, header.record_count)
    return _assemble(fields, codec, stamps, compress(codec, payload, level))


def with_records(header: BatchHeader, payload: bytes, kept: Sequence[RawRecord]) -> bytes:
    """Build a batch with some of another batch's encoded records, for the cleaner.

    The base offset and base timestamp stay, so that the deltas in the records stay valid.
    """
    fields = _fields_of(header, header.attributes & ~CODEC_MASK)
    max_timestamp = header.max_timestamp
    if not header.uses_log_append_time:
        max_timestamp = header.base_timestamp + max(record.timestamp_delta for record in kept)
    new_payload = b"".join(payload[record.start : record.end] for record in kept)
    if header.codec:
        new_payload = compress(header.codec, new_payload)
    return _assemble(
        fields, header.codec, (header.base_timestamp, max_timestamp, len(kept)), new_payload
    )


def empty_batch(header: BatchHeader) -> bytes:
    """Build a batch without records that keeps a producer's last sequence, for the cleaner."""
    fields = _fields_of(header, header.attributes & ~(CODEC_MASK | DELETE_HORIZON_FLAG))
    return _assemble(fields, 0, (NO_TIMESTAMP, header.max_timestamp, 0), b"")


def _fields_of(header: BatchHeader, attributes: int) -> BatchFields:
    return BatchFields(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        leader_epoch=header.partition_leader_epoch,
        attributes=attributes,
    )


def _base_timestamp(records: Sequence[Record], fields: BatchFields) -> int:
    if fields.delete_horizon_ms is not None:
        return fields.delete_horizon_ms
    return records[0].timestamp_ms if records else NO_TIMESTAMP


def _assemble(
    fields: BatchFields, codec: int, stamps: tuple[int, int, int], payload: bytes
) -> bytes:
    base_timestamp, max_timestamp, record_count = stamps
    attributes = fields.attributes | codec
    if fields.delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_FLAG
    last_offset_delta = fields.last_offset - fields.base_offset
    after_crc = (
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        fields.producer_id,
        fields.producer_epoch,
        fields.base_sequence,
        record_count,
    )
    crc = crc32c(payload, crc32c(_UNDER_CRC.pack(*after_crc)))
    batch_length = HEADER.size - LOG_OVERHEAD_BYTES + len(payload)
    front = (fields.base_offset, batch_length, fields.leader_epoch, MAGIC, crc)
    return HEADER.pack(*front, *after_crc) + payload


def stamped_with_append_time(batch: BytesLike, timestamp_ms: int) -> bytes:
    """Return the batch with log append time: flag and max timestamp in the header, a new CRC."""
    attributes = HEADER.unpack_from(batch)[5] | LOG_APPEND_TIME_FLAG
    return _stamped(batch, attributes, timestamp_ms)


def stamped_with_create_time(batch: BytesLike, max_timestamp: int) -> bytes:
    """Return the batch with create time and a corrected max timestamp."""
    attributes = HEADER.unpack_from(batch)[5] & ~LOG_APPEND_TIME_FLAG
    return _stamped(batch, attributes, max_timestamp)


def _stamped(batch: BytesLike, attributes: int, max_timestamp: int) -> bytes:
    fields = list(HEADER.unpack_from(batch))
    fields[5], fields[8] = attributes, max_timestamp
    under_crc = _UNDER_CRC.pack(*fields[5:])
    payload = memoryview(batch)[HEADER.size :]
    fields[4] = crc32c(payload, crc32c(under_crc))
    return b"".join((HEADER.pack(*fields), payload))
