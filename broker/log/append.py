"""Appending to a partition's log: the hot path of the broker.

A leader checks the header, the CRC and the lengths of the records. It writes 16 new bytes (base
offset, length, leader epoch), followed by the client's bytes from there on. It decodes and changes
the records only if the topic's settings require it (`rewrite`) or the timestamps in the client's
header are wrong. A follower appends batches unchanged.

Memory changes only after the write has succeeded.
"""

from collections.abc import Generator
from enum import Enum
from functools import partial
from mmap import mmap
from typing import Any, NamedTuple

from broker.log.local_log import LocalLog
from broker.log.producers.verification import NO_TRANSACTION, TransactionAppend
from broker.log.rewrite import Aside, rewrite_for_topic, rewrite_in_steps
from broker.log.walk import BatchPosition
from broker.records.batch import RecordBatch, split_batches
from broker.records.compression import unpack
from broker.records.control import EndMarker, end_marker
from broker.records.errors import CorruptBatch
from broker.records.header import (
    CONTROL_FLAG,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_TIMESTAMP,
    PATCH,
    BatchHeader,
    BytesLike,
)
from broker.records.record import parse_records
from broker.records.validation import (
    UnpackBudget,
    read_single_batch,
    refusal_of,
    validate_header,
    validate_in_steps,
)
from common.kafka.errors import ErrorCode, KafkaError


class AppendOrigin(Enum):
    """The source of a batch. Only batches of clients are validated, with their sequence numbers."""

    CLIENT = "client"
    CHECKED_CLIENT = "client whose batch went through `accept_in_steps`"
    COORDINATOR = "coordinator"
    RAFT_LEADER = "raft leader"


_CLIENT = AppendOrigin.CLIENT
_CHECKED_CLIENT = AppendOrigin.CHECKED_CLIENT
"""Module constants, because access to a member of an enum is a slow call in Python 3.11."""


class AppendInfo(NamedTuple):
    """The result of an append; `last_offset` is inclusive."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    is_duplicate: bool = False


class Accepted(NamedTuple):
    """A client's validated large batch in the form to append, and its decompressed size."""

    records: BytesLike
    unpacked_bytes: int


def append_as_leader(
    log: LocalLog,
    records: BytesLike,
    leader_epoch: int,
    timestamp_ms: int,
    origin: AppendOrigin,
    transaction: TransactionAppend = NO_TRANSACTION,
    budget: UnpackBudget | None = None,
) -> AppendInfo:
    """Append one batch at the end of the log; raise KafkaError, with nothing changed, to refuse.

    Raise TooMuchAtOnce for a client's batch that must go through `accept_in_steps` first.
    """
    header = read_single_batch(records)
    limits, is_client = log.append_limits, origin is _CLIENT
    if len(records) > limits.max_message_bytes:
        raise _too_large(ErrorCode.MESSAGE_TOO_LARGE, header, limits.max_message_bytes)
    if is_client:
        accepted = log.place.validator.validate_client_batch(
            header, records, limits.timestamps, timestamp_ms, budget
        )
        if accepted is not records:
            records, header = accepted, read_single_batch(accepted)
    if limits.needs_rewrite and origin is not _CHECKED_CLIENT:
        header, records = _rewritten(log, header, records, timestamp_ms, is_client=is_client)
    size_bytes = len(records)
    if size_bytes > limits.segment_bytes:
        raise _too_large(ErrorCode.RECORD_LIST_TOO_LARGE, header, limits.segment_bytes)
    marker = None
    if header.producer_id >= 0:
        is_client = is_client or origin is _CHECKED_CLIENT
        duplicate = log.producers.find_duplicate(header) if is_client else None
        if duplicate is not None:
            append_time = duplicate.timestamp_ms if limits.timestamps.uses_log_append_time else -1
            return AppendInfo(
                duplicate.base_offset,
                duplicate.last_offset,
                append_time,
                log.log_start_offset,
                True,
            )
        marker = _validate_producer(log, header, records, transaction, is_client=is_client)
    base_offset = log.log_end_offset
    log.maybe_roll(size_bytes, header, timestamp_ms)
    if leader_epoch > log.epochs.latest_epoch:
        log.epochs.assign(leader_epoch, base_offset)
    front = PATCH.pack(base_offset, header.batch_length, leader_epoch)
    _write(log, header, base_offset, front, memoryview(records)[PATCH.size :])
    if header.producer_id >= 0:
        note_producer(log, header, base_offset, marker)
    log.after_append(header.record_count, timestamp_ms)
    append_time = timestamp_ms if limits.timestamps.uses_log_append_time else NO_TIMESTAMP
    return tuple.__new__(
        AppendInfo,
        (base_offset, log.log_end_offset - 1, append_time, log.log_start_offset, False),
    )


def accept_in_steps(
    log: LocalLog, records: BytesLike, timestamp_ms: int, aside: Aside
) -> Generator[Any, None, Accepted]:
    """Validate a client's large batch; return it in the form to append (CHECKED_CLIENT).

    It is decompressed on another thread, and its records are validated in bounded steps. Raise
    KafkaError.
    """
    header = read_single_batch(records)
    limits, config = log.append_limits, log.config
    validate_header(header, records)
    packed = memoryview(records)[HEADER_BYTES:]
    payload: BytesLike | mmap = packed
    if header.codec:
        payload = yield from aside(partial(_unpacked, header.codec, packed))
    unpacked_bytes = len(payload)
    try:
        records = yield from validate_in_steps(
            header, records, payload, limits.timestamps, timestamp_ms
        )
        header = read_single_batch(records)
        records = yield from rewrite_in_steps(
            config, header, records, payload, timestamp_ms=timestamp_ms, aside=aside
        )
    except CorruptBatch as error:
        raise refusal_of(error) from None
    if isinstance(payload, mmap):
        # Releasing this much memory takes long, too.
        yield from aside(payload.close)
    return Accepted(records, unpacked_bytes)


def _rewritten(
    log: LocalLog, header: BatchHeader, records: BytesLike, timestamp_ms: int, *, is_client: bool
) -> tuple[BatchHeader, BytesLike]:
    rewritten = rewrite_for_topic(log.config, header, records, timestamp_ms, is_client=is_client)
    return (header if rewritten is records else read_single_batch(rewritten)), rewritten


def _unpacked(codec: int, payload: BytesLike) -> mmap:
    try:
        return unpack(codec, payload)
    except CorruptBatch as error:
        raise refusal_of(error) from None


def _write(log: LocalLog, header: BatchHeader, base_offset: int, *parts: BytesLike) -> None:
    segment = log.segments.active
    position, last_offset = segment.size_bytes, base_offset + header.last_offset_delta
    size_bytes = header.batch_length + LOG_OVERHEAD_BYTES
    batch = tuple.__new__(
        BatchPosition, (base_offset, last_offset, position, size_bytes, header.max_timestamp)
    )
    segment.append(batch, log.append_limits.index_interval_bytes, *parts)
    log.log_end_offset = last_offset + 1


def _validate_producer(
    log: LocalLog,
    header: BatchHeader,
    records: BytesLike,
    transaction: TransactionAppend,
    *,
    is_client: bool,
) -> EndMarker | None:
    if not header.attributes & CONTROL_FLAG:
        log.producers.validate_data(header, checks_sequence=is_client, transaction=transaction)
        return None
    marker = marker_of(header, memoryview(records)[HEADER_BYTES:])
    if marker is not None:
        log.producers.validate_marker(
            header.producer_id, header.producer_epoch, marker, transaction.transaction_version
        )
    return marker


def marker_of(header: BatchHeader, payload: BytesLike) -> EndMarker | None:
    """Return the transaction marker of a control batch; None if the cleaner emptied the batch."""
    for record in parse_records(payload, header):
        return end_marker(record)
    return None


def note_producer(
    log: LocalLog, header: BatchHeader, base_offset: int, marker: EndMarker | None
) -> None:
    """Add an appended batch with a producer id to the producer state."""
    if not header.attributes & CONTROL_FLAG:
        log.producers.add_data(header, base_offset)
    elif marker is not None:
        aborted = log.producers.add_marker(header, marker, base_offset, header.max_timestamp)
        if aborted is not None:
            log.segments.active.transaction_index.append(aborted)


def append_as_follower(log: LocalLog, records: BytesLike, timestamp_ms: int) -> AppendInfo:
    """Append the leader's batches unchanged; an incomplete batch at the end is left out.

    Raise CorruptBatch for a batch that no correct leader sends; neither it nor the batches after
    it are written.
    """
    first_offset, append_time = log.log_end_offset, NO_TIMESTAMP
    for batch in split_batches(records):
        header = batch.header
        if not batch.has_valid_crc:
            raise CorruptBatch(f"batch {header.base_offset} from the leader fails its CRC")
        if header.base_offset < log.log_end_offset:
            raise CorruptBatch(f"batch {header.base_offset} is below {log.log_end_offset}")
        _append_follower_batch(log, batch, timestamp_ms)
        append_time = header.max_timestamp if header.uses_log_append_time else NO_TIMESTAMP
    return AppendInfo(first_offset, log.log_end_offset - 1, append_time, log.log_start_offset)


def base_of_batch_across(records: BytesLike, offset: int) -> int | None:
    """Return the base offset of the first batch if the batch extends across `offset`."""
    for batch in split_batches(records):
        header = batch.header
        is_across = header.base_offset < offset < header.next_offset
        return header.base_offset if is_across and batch.has_valid_crc else None
    return None


def _append_follower_batch(log: LocalLog, batch: RecordBatch, timestamp_ms: int) -> None:
    header = batch.header
    log.maybe_roll(header.size_bytes, header, timestamp_ms)
    if header.partition_leader_epoch > log.epochs.latest_epoch:
        log.epochs.assign(header.partition_leader_epoch, header.base_offset)
    _write(log, header, header.base_offset, batch.buffer)
    if header.producer_id >= 0:
        marker = marker_of(header, batch.buffer[HEADER_BYTES:]) if header.is_control else None
        note_producer(log, header, header.base_offset, marker)
    log.after_append(header.record_count, timestamp_ms)


def _too_large(code: ErrorCode, header: BatchHeader, limit_bytes: int) -> KafkaError:
    message = f"The record batch size is {header.size_bytes} bytes, the limit is {limit_bytes}"
    return KafkaError(code, message)
