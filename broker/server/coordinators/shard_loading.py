"""Rebuilds a shard from its log, a piece a turn: a large one keeps nobody from the loop.

All of the log is replayed, also what is not committed yet: it will be, for this broker leads now.
"""

from collections.abc import Iterator
from typing import Protocol

from broker.log.partition_log import PartitionLog
from broker.server.storage.reading import batches_in_pieces


class Replays(Protocol):
    """A shard that is being loaded."""

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply one record, in log order."""


def load(shard: Replays, partition_log: PartitionLog) -> Iterator[None]:
    """Replay every record, yielding after each piece; raises CorruptBatch, KafkaError, OSError."""
    for piece in batches_in_pieces(partition_log, partition_log.log_end_offset):
        for batch in piece:
            if batch.header.is_control:
                continue
            for record in batch.records():
                if record.key is not None:
                    shard.replay(record.key, record.value)
        yield
