"""Rebuilds a shard from its log, a piece a turn: a large one keeps nobody from the loop.

All of the log is replayed, also what is not committed yet: it will be, for this broker leads now.
"""

from collections.abc import Iterator
from typing import Protocol

from broker.log.append import marker_of
from broker.log.partition_log import PartitionLog
from broker.records.batch import RecordBatch
from broker.records.header import HEADER_BYTES, NO_PRODUCER_ID
from broker.server.storage.reading import batches_in_pieces

RECORDS_AT_ONCE = 500
"""Some milliseconds' worth of replaying."""


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
    for batch in paced(partition_log):
        if batch is None:
            yield
        elif not batch.header.is_control:
            for record in batch.records():
                if record.key is not None:
                    shard.replay(record.key, record.value)


def load_with_transactions(
    shard: ReplaysTransactions, partition_log: PartitionLog
) -> Iterator[None]:
    """Do the same where producers write in transactions."""
    for batch in paced(partition_log):
        if batch is None:
            yield
            continue
        header = batch.header
        if header.is_control:
            marker = marker_of(header, batch.buffer[HEADER_BYTES:])
            if marker is not None:
                shard.replay_end_of_transaction(header.producer_id, is_commit=marker.is_commit)
            continue
        producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
        for record in batch.records():
            if record.key is not None:
                shard.replay(record.key, record.value, producer_id)


def paced(partition_log: PartitionLog) -> Iterator[RecordBatch | None]:
    """Yield every batch, and None whenever it is time to let others come in between."""
    record_count = 0
    for piece in batches_in_pieces(partition_log, partition_log.log_end_offset):
        for batch in piece:
            yield batch
            record_count += batch.header.record_count
            if record_count >= RECORDS_AT_ONCE:
                record_count = 0
                yield None
