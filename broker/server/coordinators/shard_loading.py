"""Rebuilds a shard from its log, one piece per turn, so that a large shard does not block the loop.

The whole log is replayed, including the records that are not committed yet: they will be, because
this broker is the leader. In a compacted log only the last record of each key counts, and most
records are older ones: the last records are found without decoding, and only these are replayed, in
log order. This matters because clients wait while their coordinator is loading.
"""

from collections.abc import Iterator
from typing import Protocol

from broker.coordinator.classic_group.records import is_offset_key
from broker.coordinator.group_state.last_offsets import LastOffsets, OffsetFound
from broker.log.append import marker_of
from broker.log.partition_log import PartitionLog
from broker.records.batch import RecordBatch, split_batches
from broker.records.errors import CorruptBatch
from broker.records.header import HEADER_BYTES, NO_PRODUCER_ID

COST_AT_ONCE = 32 * 1024
"""The bytes of keys and values that are replayed in some milliseconds."""
COST_OF_A_RECORD = 150
"""The fixed cost of one record, expressed in bytes."""


class Replays(Protocol):
    """A shard that is being loaded."""

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply one record, in log order."""


class ReplaysAtOffsets(Replays, Protocol):
    """A shard that knows where its records are in the log."""

    def start_at(self, log_start_offset: int) -> None:
        """Begin with the first offset of the log."""

    def replay(self, key: bytes, value: bytes | None, offset: int | None = None) -> None:
        """Apply the record at an offset, in log order."""


class ReplaysTransactions(Replays, Protocol):
    """A shard in whose partition transactional producers write too."""

    def replay(self, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply one record, in log order; `producer_id` is that of a transaction."""


def load(shard: Replays, partition_log: PartitionLog) -> Iterator[None]:
    """Replay the last record of every key, yielding after each piece.

    Raises CorruptBatch, KafkaError, OSError.
    """
    pace = _Pace()
    last: dict[bytes, bytes | None] = {}
    for batch in _batches(partition_log):
        for record in () if batch.header.is_control else batch.records():
            if record.key is not None:
                last.pop(record.key, None)
                last[record.key] = record.value
            if pace.is_over(record.key, record.value):
                yield
    for key, value in last.items():
        shard.replay(key, value)
        if pace.is_over(key, value):
            yield


def load_in_order(shard: ReplaysAtOffsets, partition_log: PartitionLog) -> Iterator[None]:
    """Replay every record, for a log whose records build on earlier ones of the same key.

    Raises CorruptBatch, KafkaError, OSError.
    """
    pace = _Pace()
    shard.start_at(partition_log.log_start_offset)
    for batch in _batches(partition_log):
        for record in () if batch.header.is_control else batch.records():
            if record.key is not None:
                shard.replay(record.key, record.value, record.offset)
            if pace.is_over(record.key, record.value):
                yield


def load_with_transactions(
    shard: ReplaysTransactions, partition_log: PartitionLog
) -> Iterator[None]:
    """Replay a log of offsets in which transactional producers write too (`LastOffsets`).

    Only the last record of each committed offset is replayed; all other records are replayed in
    order.
    """
    pace = _Pace()
    offsets = LastOffsets()
    for batch in _batches(partition_log):
        header = batch.header
        if header.is_control:
            _end_transaction(offsets, batch)
            if pace.is_over():
                yield
            continue
        producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
        for record in batch.records():
            if record.key is not None:
                if is_offset_key(record.key):
                    offsets.add(OffsetFound(record.offset, record.key, record.value, producer_id))
                else:
                    shard.replay(record.key, record.value, producer_id)
            if pace.is_over(record.key, record.value):
                yield
    for found in offsets.left():
        shard.replay(found.key, found.value, found.producer_id)
        if pace.is_over(found.key, found.value):
            yield


def _end_transaction(offsets: LastOffsets, batch: RecordBatch) -> None:
    marker = marker_of(batch.header, batch.buffer[HEADER_BYTES:])
    if marker is not None:
        offsets.end(batch.header.producer_id, is_commit=marker.is_commit)


def _batches(partition_log: PartitionLog) -> Iterator[RecordBatch]:
    for piece in batches_in_pieces(partition_log, partition_log.log_end_offset):
        yield from piece


class _Pace:
    """Decides when a turn has replayed enough, also within a batch."""

    def __init__(self) -> None:
        self._cost = 0

    def is_over(self, key: bytes | None = None, value: bytes | None = None) -> bool:
        """Count a record or a marker; return True if that was enough for one turn."""
        self._cost += COST_OF_A_RECORD + len(key or b"") + len(value or b"")
        if self._cost < COST_AT_ONCE:
            return False
        self._cost = 0
        return True


CHUNK_BYTES = 128 * 1024
"""About a thousand batches of one small record: finding them takes some milliseconds."""


def batches_in_pieces(log: PartitionLog, end_offset: int) -> Iterator[list[RecordBatch]]:
    """Yield the batches below an offset, oldest first, 128 KiB at a time.

    Raises CorruptBatch or KafkaError for damaged bytes.
    """
    offset = log.log_start_offset
    while offset < end_offset:
        read = log.read(offset, max_bytes=CHUNK_BYTES, max_offset=end_offset)
        chunk = b"".join(part if isinstance(part, bytes) else part.read() for part in read.parts)
        piece = list(split_batches(chunk))
        for batch in piece:
            if not batch.has_valid_crc:
                raise CorruptBatch(f"batch {batch.base_offset} fails its CRC")
        if not piece:
            if read.size_bytes:
                raise CorruptBatch(f"no whole batch at offset {offset}")
            return
        yield piece
        offset = piece[-1].next_offset
