"""The checks that a leader makes before it appends a client's batch, like Kafka's LogValidator.

It checks the header, the CRC, and all lengths and counts in the records, which are walked without
being decoded. A batch with the structure of an earlier one is compared with that one (`layouts`).
Otherwise the walk costs hundredths of a microsecond per record if the records have the same size
and shape, and about 0.4 microseconds if they do not. So of the latter only `records_worth_walking`
are checked: with fewer than 256 bytes per record the walk would take longer than Kafka's own check.
This is a deliberate trade: in a batch of very many, very small records of different sizes, the
later records are not checked. bench/README.md has the figures.
"""

from collections.abc import Generator
from dataclasses import dataclass
from itertools import islice
from mmap import mmap

from crc32c import crc32c

from broker.records.build import stamped_with_create_time
from broker.records.compression import Codec, Scratch, decompress
from broker.records.errors import CorruptBatch, UnreadableCompression
from broker.records.header import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER,
    HEADER_BYTES,
    INT32_MAX,
    INT64_MAX,
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
from broker.records.layouts import Layouts
from broker.records.record import SMALLEST_RECORD_BYTES, parse_records, scan_keys
from broker.records.walk import (
    COPIED_RECORD_BYTES,
    WALKED_AT_LEAST,
    Walked,
    records_worth_walking,
    walk_in_steps,
    walk_records,
)
from common.kafka.errors import ErrorCode, InvalidRecordsError, KafkaError

MAGIC_POSITION = 16
_LAST_CODEC = int(Codec.ZSTD)
MAX_RECORDS_NAMED_AT_FAULT = 1_000
"""The most records of a refused batch that are checked one by one, and named if they are wrong: a
batch of a few kilobytes may decompress to millions. Kafka names all of them."""
KEYS_LOOKED_AT_IN_ONE_STEP = 1024
SMALLEST_MESSAGE_BYTES = 14
"""The overhead of a message of magic 0, the smallest one of all versions."""


@dataclass(frozen=True, slots=True)
class TimestampLimits:
    """The allowed distance of a record's timestamp from the broker's clock, and its type."""

    uses_log_append_time: bool
    before_max_ms: int
    after_max_ms: int


def read_single_batch(records: BytesLike) -> BatchHeader:
    """Return the header of the one batch that a Produce request has per partition (v3 and up).

    Raise KafkaError like Kafka's ProduceRequest.validateRecords and its batch iterator: a missing,
    incomplete or second batch is INVALID_RECORD, an impossible size CORRUPT_MESSAGE.
    """
    available = len(records)
    if available < HEADER_BYTES:
        raise _first_batch_refusal(records)
    header = tuple.__new__(BatchHeader, HEADER.unpack_from(records))  # `read_header`, in line
    if header.batch_length + LOG_OVERHEAD_BYTES != available or header.magic != MAGIC:
        raise _first_batch_refusal(records)
    return header


def _first_batch_refusal(records: BytesLike) -> KafkaError:
    """Return the error for bytes that are not exactly one batch of magic 2."""
    available = len(records)
    if available <= LOG_OVERHEAD_BYTES:
        return _invalid("Produce requests must have at least one record batch per partition")
    _, batch_length = OFFSET_AND_LENGTH.unpack_from(records)
    magic = records[MAGIC_POSITION] if available > MAGIC_POSITION else MAGIC
    size_bytes = batch_length + LOG_OVERHEAD_BYTES
    if size_bytes > INT32_MAX:
        # Kafka's sum overflows for this length, so its answer is this code.
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"No batch has {batch_length} bytes")
    if batch_length < SMALLEST_MESSAGE_BYTES or magic > MAGIC:
        return _corrupt(f"Record size {batch_length} with magic {magic} is no record")
    if magic < MAGIC:
        return _invalid("Produce requests may only contain record batches with magic version 2")
    if size_bytes > available:
        return _invalid(f"The record batch of {batch_length} bytes is cut off after {available}")
    return _mismatch_refusal(records, size_bytes)


def _mismatch_refusal(records: BytesLike, size_bytes: int) -> KafkaError:
    """Return the error for a batch with a wrong length, or for a batch with others after it."""
    is_whole = (
        size_bytes >= HEADER_BYTES
        and crc32c(memoryview(records)[ATTRIBUTES_POSITION:size_bytes]) == read_header(records).crc
    )
    if not is_whole:
        return _corrupt(f"Record is corrupt, or {size_bytes} bytes is not its size")
    return _invalid("Produce requests must have exactly one record batch per partition")


class UnpackBudget:
    """How much the batches of one request may unpack to, together."""

    __slots__ = ("left_bytes",)

    def __init__(self, limit_bytes: int) -> None:
        self.left_bytes = limit_bytes

    def spend(self, size_bytes: int) -> None:
        """Count what was unpacked; the last batch may exceed the limit."""
        self.left_bytes -= size_bytes

    @property
    def is_spent(self) -> bool:
        """True if no further batch may be unpacked."""
        return self.left_bytes < 0


class BatchValidator:
    """Checks the batches of one thread, and keeps the layouts of the last ones."""

    def __init__(self) -> None:
        self._scratch = Scratch()
        self._layouts = Layouts()

    def validate_client_batch(
        self,
        header: BatchHeader,
        records: BytesLike,
        limits: TimestampLimits,
        timestamp_ms: int,
        budget: UnpackBudget | None = None,
    ) -> BytesLike:
        """Check a client's batch; return it in the form to store; raise KafkaError to refuse it.

        The stored form is the client's own, except for what Kafka corrects: the max timestamp, and
        a false log-append-time flag. Like Kafka, it does not check the offset deltas of
        uncompressed records. Raise TooMuchAtOnce for a batch that must be decompressed on another
        thread and go through `validate_in_steps`.
        """
        validate_header(header, records)
        payload: BytesLike = memoryview(records)[HEADER_BYTES:]
        codec = header.attributes & CODEC_MASK
        try:
            if codec:
                payload = decompress(codec, payload, self._scratch)
                if budget is not None:
                    budget.spend(len(payload))
            walked = self._walk(header.record_count, payload)
            return _stored_form(header, records, payload, walked, limits, timestamp_ms)
        except CorruptBatch as error:
            raise refusal_of(error) from None

    def _walk(self, count: int, payload: BytesLike) -> Walked:
        size_bytes = len(payload)
        if count * SMALLEST_RECORD_BYTES > size_bytes:
            raise CorruptBatch(f"{count} records do not fit in {size_bytes} bytes")
        if size_bytes <= count * COPIED_RECORD_BYTES:
            payload = bytes(payload)
            walked = self._layouts.walk(payload, count)
            if walked is not None:
                return walked
        if count <= WALKED_AT_LEAST:
            return walk_records(payload, count)
        return walk_records(payload, count, records_worth_walking(size_bytes))


def validate_in_steps(
    header: BatchHeader,
    records: BytesLike,
    payload: BytesLike | mmap,
    limits: TimestampLimits,
    timestamp_ms: int,
) -> Generator[None, None, BytesLike]:
    """Check the records of a decompressed batch whose header is checked, and yield at intervals.

    Return the batch in the form to store, as `validate_client_batch` does. Raise CorruptBatch for
    records that do not match the header, KafkaError for others that are refused.
    """
    count = header.record_count
    if count * SMALLEST_RECORD_BYTES > len(payload):
        raise CorruptBatch(f"{count} records do not fit in {len(payload)} bytes")
    walked = yield from walk_in_steps(payload, count, records_worth_walking(len(payload)))
    return _stored_form(header, records, payload, walked, limits, timestamp_ms)


def validate_header(header: BatchHeader, records: BytesLike) -> None:
    """Raise KafkaError for a header that no correct client writes, or a wrong CRC."""
    if header.base_offset != 0:
        raise _invalid(f"The base offset of an appended batch is 0, not {header.base_offset}")
    if crc32c(memoryview(records)[ATTRIBUTES_POSITION:]) != header.crc:
        raise _corrupt(f"Record is corrupt (stored crc {header.crc})")
    attributes, count = header.attributes, header.record_count
    if attributes & CODEC_MASK > _LAST_CODEC:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown codec {header.codec}")
    if count <= 0 or count != header.last_offset_delta + 1:
        raise _invalid(
            f"Inconsistent batch: {count} records, last offset delta {header.last_offset_delta}"
        )
    if attributes & CONTROL_FLAG:
        raise _invalid("Clients are not allowed to write control records")
    if header.producer_id >= 0:
        if header.base_sequence < 0:
            raise _invalid(f"Invalid sequence number {header.base_sequence} of a producer")
    elif attributes & TRANSACTIONAL_FLAG:
        raise _invalid("Transactional records need a producer id")


def _stored_form(
    header: BatchHeader,
    records: BytesLike,
    payload: BytesLike | mmap,
    walked: Walked,
    limits: TimestampLimits,
    timestamp_ms: int,
) -> BytesLike:
    """Return a client's batch as it is stored, after a walk; raise KafkaError to refuse it."""
    attributes, base_timestamp = header.attributes, header.base_timestamp
    earliest = base_timestamp + walked.earliest_delta
    latest = max(base_timestamp + walked.latest_delta, NO_TIMESTAMP)
    is_stamped = attributes & LOG_APPEND_TIME_FLAG
    if is_stamped:
        if limits.uses_log_append_time or header.max_timestamp == NO_TIMESTAMP:
            raise KafkaError(
                ErrorCode.INVALID_TIMESTAMP,
                "Producers should not set timestamp type to LogAppendTime",
            )
        earliest = latest = header.max_timestamp
    elif not walked.is_complete:
        latest = max(latest, header.max_timestamp)
    if not limits.uses_log_append_time:
        # The sum of base and delta may be outside the range of timestamps.
        low = max(timestamp_ms - limits.before_max_ms, -INT64_MAX)
        high = min(timestamp_ms + limits.after_max_ms, INT64_MAX)
        if earliest < low or latest > high:
            # Records without a timestamp (-1) are valid.
            is_sure = latest > high or earliest != NO_TIMESTAMP or not walked.is_complete
            is_all_seen = walked.is_complete and header.record_count <= MAX_RECORDS_NAMED_AT_FAULT
            _refuse_timestamps(header, payload, low, high, is_sure=is_sure and not is_all_seen)
    if attributes & CODEC_MASK and not walked.has_consecutive_offsets:
        raise _not_consecutive()
    if limits.uses_log_append_time or (latest == header.max_timestamp and not is_stamped):
        return records
    return stamped_with_create_time(records, latest)


def _refuse_timestamps(
    header: BatchHeader, payload: BytesLike | mmap, low: int, high: int, *, is_sure: bool
) -> None:
    """Raise InvalidRecordsError if one of the first records is outside, or if `is_sure`."""
    faulty = [
        (index, f"The timestamp {record.timestamp_ms} of this record is not within [{low}, {high}]")
        for index, record in enumerate(
            islice(parse_records(payload, header), MAX_RECORDS_NAMED_AT_FAULT)
        )
        if record.timestamp_ms != NO_TIMESTAMP and not low <= record.timestamp_ms <= high
    ]
    if faulty or is_sure:
        raise InvalidRecordsError(
            ErrorCode.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            faulty,
        )


def validate_keys_in_steps(
    header: BatchHeader, payload: BytesLike | mmap
) -> Generator[None, None, None]:
    """Raise INVALID_RECORD for records without a key, which a compacted topic refuses.

    All records of the payload have been walked.
    """
    keyless: list[int] = []
    keyless_count = 0
    for index, has_key in enumerate(scan_keys(payload, header.record_count)):
        if not has_key:
            keyless_count += 1
            if keyless_count <= MAX_RECORDS_NAMED_AT_FAULT:
                keyless.append(index)
        if not index % KEYS_LOOKED_AT_IN_ONE_STEP:
            yield
    if keyless:
        raise InvalidRecordsError(
            ErrorCode.INVALID_RECORD,
            f"One or more records have been rejected: {keyless_count} without key, the first at "
            f"{keyless[0]} in its batch",
            [(index, "Compacted topic cannot accept message without key") for index in keyless],
        )


def refusal_of(error: CorruptBatch) -> KafkaError:
    """Return the error for a client's batch that cannot be read."""
    if isinstance(error, UnreadableCompression):
        # Kafka raises no InvalidRecordException here, so its answer is this code.
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
    return _invalid(str(error))


def _not_consecutive() -> KafkaError:
    # Kafka would renumber the records, and fails because it has not read them.
    return KafkaError(
        ErrorCode.UNKNOWN_SERVER_ERROR, "The offsets of compressed records do not follow"
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
