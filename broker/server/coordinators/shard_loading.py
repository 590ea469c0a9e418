"""Rebuilds a shard from its log, a piece a turn: a large one keeps nobody from the loop.

All of the log is replayed, also what is not committed yet: it will be, for this broker leads now.
"""

from collections.abc import Iterator
from typing import Protocol

from broker.log.append import marker_of
from broker.log.partition_log import PartitionLog
from broker.records.batch import RecordBatch
from broker.records.header import HEADER_BYTES, NO_PRODUCER_ID
from broker.records.record import Record
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

    def replay_end_of_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply a marker, in log order."""


def load(shard: Replays, partition_log: PartitionLog) -> Iterator[None]:
    """Replay every record, yielding after some; raises CorruptBatch, KafkaError, OSError."""
    pace = _Pace()
    for batch in _batches(partition_log):
        for record in () if batch.header.is_control else batch.records():
            if record.key is not None:
                shard.replay(record.key, record.value)
            if pace.is_over(record):
                yield


def load_with_transactions(
    shard: ReplaysTransactions, partition_log: PartitionLog
) -> Iterator[None]:
    """Do the same where producers write in transactions."""
    pace = _Pace()
    for batch in _batches(partition_log):
        header = batch.header
        if header.is_control:
            marker = marker_of(header, batch.buffer[HEADER_BYTES:])
            if marker is not None:
                shard.replay_end_of_transaction(header.producer_id, is_commit=marker.is_commit)
            if pace.is_over():
                yield
            continue
        producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
        for record in batch.records():
            if record.key is not None:
                shard.replay(record.key, record.value, producer_id)
            if pace.is_over(record):
                yield


def _batches(partition_log: PartitionLog) -> Iterator[RecordBatch]:
    for piece in batches_in_pieces(partition_log, partition_log.log_end_offset):
        yield from piece


class _Pace:
    """Tells when it is time to let others come in between, be it within a batch."""

    def __init__(self) -> None:
        self._cost = 0

    def is_over(self, record: Record | None = None) -> bool:
        """Count a record, or a marker; whether that was enough for one turn."""
        self._cost += COST_OF_A_RECORD
        if record is not None:
            self._cost += len(record.key or b"") + len(record.value or b"")
        if self._cost < COST_AT_ONCE:
            return False
        self._cost = 0
        return True
