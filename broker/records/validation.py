"""What a leader checks before it appends a client's batch, as Kafka's LogValidator.

The header and the CRC are always checked. The records of a small batch have their lengths walked,
which costs a microsecond or two; those of a large one stay unseen, unless the topic's settings need
them (compacted topics need keys, recompression needs the payload). So a plain produce costs the
same for a hundred records and for ten thousand, and nothing is unpacked on the way.

Kafka decodes every batch, and so differs where only the records of a large batch are wrong. It also
answers UNKNOWN_SERVER_ERROR to an unknown codec; UNSUPPORTED_COMPRESSION_TYPE tells more.
"""

from dataclasses import dataclass

from crc32c import crc32c

from broker.errors import ErrorCode, InvalidRecordsError, KafkaError
from broker.records.compression import Codec, decompress
from broker.records.errors import CorruptBatch
from broker.records.header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    NO_TIMESTAMP,
    OFFSET_AND_LENGTH,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    BytesLike,
    read_header,
)
from broker.records.record import SMALLEST_RECORD_BYTES, parse_records, validate_lengths

MAGIC_POSITION = 16
SMALLEST_MESSAGE_BYTES = 14
"""The overhead of a message of magic 0, the smallest there ever was."""

WALKED_RECORDS = 16
"""Up to so many uncompressed records have their lengths checked: about a tenth of a us each."""
UNPACKED_BYTES = 1024
"""Compressed records up to this size are unpacked, under the limits, to have them checked."""

_FRAME_STARTS = {
    Codec.GZIP: b"\x1f\x8b",
    Codec.LZ4: b"\x04\x22\x4d\x18",
    Codec.ZSTD: b"\x28\xb5\x2f\xfd",
}


@dataclass(frozen=True, slots=True)
class TimestampLimits:
    """How far a record's timestamp may lie from the broker's clock, and whether it counts."""

    uses_log_append_time: bool
    before_max_ms: int
    after_max_ms: int


def read_single_batch(records: BytesLike) -> BatchHeader:
    """Read the header of the one batch a produce request has per partition (v3 and up).

    Raises KafkaError as Kafka's ProduceRequest.validateRecords and its batch iterator do: an
    absent, incomplete or second batch is INVALID_RECORD, a size no batch can have CORRUPT_MESSAGE.
    """
    available = len(records)
    if available < HEADER_BYTES:
        raise _first_batch_refusal(records)
    header = read_header(records)
    if header.batch_length + LOG_OVERHEAD_BYTES != available or header.magic != MAGIC:
        raise _first_batch_refusal(records)
    return header


def _first_batch_refusal(records: BytesLike) -> KafkaError:
    """Say what is wrong with bytes that are not exactly one batch of magic 2."""
    available = len(records)
    if available <= LOG_OVERHEAD_BYTES:
        return _invalid("Produce requests must have at least one record batch per partition")
    _, batch_length = OFFSET_AND_LENGTH.unpack_from(records)
    magic = records[MAGIC_POSITION] if available > MAGIC_POSITION else MAGIC
    size_bytes = batch_length + LOG_OVERHEAD_BYTES
    if batch_length < SMALLEST_MESSAGE_BYTES or magic > MAGIC:
        return _corrupt(f"Record size {batch_length} with magic {magic} is no record")
    if magic < MAGIC:
        return _invalid("Produce requests may only contain record batches with magic version 2")
    if size_bytes > available:
        return _invalid(f"The record batch of {batch_length} bytes is cut off after {available}")
    return _mismatch_refusal(records, size_bytes)


def _mismatch_refusal(records: BytesLike, size_bytes: int) -> KafkaError:
    """Tell a batch whose length is wrong from a batch that others follow."""
    is_whole = (
        size_bytes >= HEADER_BYTES
        and crc32c(memoryview(records)[ATTRIBUTES_POSITION:size_bytes]) == read_header(records).crc
    )
    if not is_whole:
        return _corrupt(f"Record is corrupt, or {size_bytes} bytes is not its size")
    return _invalid("Produce requests must have exactly one record batch per partition")


def validate_client_header(header: BatchHeader, records: BytesLike) -> None:
    """Refuse a header no honest client writes, and a CRC that does not fit."""
    if header.base_offset != 0:
        raise _invalid(f"The base offset of an appended batch is 0, not {header.base_offset}")
    if crc32c(memoryview(records)[ATTRIBUTES_POSITION:]) != header.crc:
        raise _corrupt(f"Record is corrupt (stored crc {header.crc})")
    count = header.record_count
    if count <= 0 or count != header.last_offset_delta + 1:
        raise _invalid(
            f"Inconsistent batch: {count} records, last offset delta {header.last_offset_delta}"
        )
    if header.attributes & CONTROL_FLAG:
        raise _invalid("Clients are not allowed to write control records")
    if header.producer_id >= 0:
        if header.base_sequence < 0:
            raise _invalid(f"Invalid sequence number {header.base_sequence} of a producer")
    elif header.attributes & TRANSACTIONAL_FLAG:
        raise _invalid("Transactional records need a producer id")
    _validate_payload(header, memoryview(records)[HEADER_BYTES:])


def _validate_payload(header: BatchHeader, payload: memoryview) -> None:
    """Catch a codec, a count or a length that lies, without a walk through a large batch."""
    codec = header.attributes & CODEC_MASK
    count = header.record_count
    try:
        if codec:
            _validate_compressed(codec, payload, count)
        elif count * SMALLEST_RECORD_BYTES > len(payload):
            raise CorruptBatch(f"{count} records do not fit in {len(payload)} bytes")
        elif count <= WALKED_RECORDS:
            validate_lengths(payload, count)
    except CorruptBatch as error:
        raise _invalid(str(error)) from None


def _validate_compressed(codec: int, payload: memoryview, record_count: int) -> None:
    if codec > Codec.ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown codec {codec}")
    if len(payload) <= UNPACKED_BYTES:
        validate_lengths(decompress(codec, payload), record_count)
        return
    start = _FRAME_STARTS.get(Codec(codec), b"")
    if payload[: len(start)] != start:
        raise CorruptBatch(f"the records are not compressed with {Codec(codec).name.lower()}")


def validate_timestamps(
    header: BatchHeader, records: BytesLike, limits: TimestampLimits, timestamp_ms: int
) -> None:
    """Refuse timestamps out of range; the header's maximum stands for all records.

    Only then is the batch decoded, to name the records that are at fault.
    """
    if header.attributes & LOG_APPEND_TIME_FLAG:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP, "Producers should not set timestamp type to LogAppendTime"
        )
    if limits.uses_log_append_time:
        return
    latest, first = header.max_timestamp, header.base_timestamp
    too_late = latest != NO_TIMESTAMP and latest - timestamp_ms > limits.after_max_ms
    too_early = first != NO_TIMESTAMP and timestamp_ms - first > limits.before_max_ms
    if too_late or too_early:
        low, high = timestamp_ms - limits.before_max_ms, timestamp_ms + limits.after_max_ms
        raise InvalidRecordsError(
            ErrorCode.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            _out_of_range(header, records, low, high),
        )


def _out_of_range(
    header: BatchHeader, records: BytesLike, low: int, high: int
) -> list[tuple[int, str]]:
    """Name every record of a batch whose timestamp is not in [low, high]."""
    try:
        payload = decompress(header.codec, memoryview(records)[HEADER_BYTES:])
        return [
            (
                index,
                f"The timestamp {record.timestamp_ms} of this record is not within [{low}, {high}]",
            )
            for index, record in enumerate(parse_records(payload, header))
            if record.timestamp_ms != NO_TIMESTAMP and not low <= record.timestamp_ms <= high
        ]
    except CorruptBatch as error:
        raise _invalid(str(error)) from None


def validate_keys(header: BatchHeader, records: BytesLike) -> None:
    """Decode every record: a compacted topic takes none without a key (INVALID_RECORD)."""
    try:
        payload = decompress(header.codec, memoryview(records)[HEADER_BYTES:])
        keyless = [
            index
            for index, record in enumerate(parse_records(payload, header))
            if record.key is None
        ]
    except CorruptBatch as error:
        raise _invalid(str(error)) from None
    if keyless:
        raise InvalidRecordsError(
            ErrorCode.INVALID_RECORD,
            f"One or more records have been rejected: {len(keyless)} without key, the first at "
            f"{keyless[0]} in its batch",
            [(index, "Compacted topic cannot accept message without key") for index in keyless],
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
