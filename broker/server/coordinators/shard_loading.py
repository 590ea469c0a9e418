"""Rebuilds a shard from its log, a piece a turn: a large one keeps nobody from the loop.

All of the log is replayed, also what is not committed yet: it will be, for this broker leads now.
Of what a topic keeps by its key only the last counts, and such a log is mostly what came before:
it is found without being decoded, and only what is left in the end is replayed, in log order.
Whoever waits for this coordinator waits for that.
"""

from collections.abc import Iterator
from typing import Protocol

from broker.coordinator.group.last_offsets import LastOffsets, OffsetFound
from broker.coordinator.group.records import is_offset_key
from broker.log.append import marker_of
from broker.log.partition_log import PartitionLog
from broker.records.batch import RecordBatch
from broker.records.header import HEADER_BYTES, NO_PRODUCER_ID
from broker.server.storage.reading import batches_in_pieces

COST_AT_ONCE = 32 * 1024
"""Some milliseconds' worth of replaying, in bytes of keys and values."""
COST_OF_A_RECORD = 150
"""What one costs beside its bytes, in the same."""


class Replays(Protocol):
    """A shard that is being loaded."""

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply one record, in log order."""


class ReplaysTransactions(Replays, Protocol):
    """One in whose partition producers write, too, in transactions."""

    def replay(self, key: bytes, value: bytes | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply one record, in log order; `producer_id` is that of a transaction."""


def load(shard: Replays, partition_log: PartitionLog) -> Iterator[None]:
    """Replay the last record of every key, yielding after some.

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


def load_with_transactions(
    shard: ReplaysTransactions, partition_log: PartitionLog
) -> Iterator[None]:
    """Do so with offsets where producers write, too, in transactions (`LastOffsets`).

    All other records are replayed one after the other.
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
    """Tells when it is time to let others come in between, be it within a batch."""

    def __init__(self) -> None:
        self._cost = 0

    def is_over(self, key: bytes | None = None, value: bytes | None = None) -> bool:
        """Count a record, or a marker; whether that was enough for one turn."""
        self._cost += COST_OF_A_RECORD + len(key or b"") + len(value or b"")
        if self._cost < COST_AT_ONCE:
            return False
        self._cost = 0
        return True
