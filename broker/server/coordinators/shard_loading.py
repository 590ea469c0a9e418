"""Rebuilds a group shard from its log, a piece a turn: a large one keeps nobody from the loop.

All of the log is replayed, also what is not committed yet: it will be, for this broker leads now.
"""

from collections.abc import Iterator

from broker.coordinator.group.shard import GroupShard
from broker.log.partition_log import PartitionLog
from broker.server.storage.reading import batches_in_pieces


def load(shard: GroupShard, partition_log: PartitionLog) -> Iterator[None]:
    """Replay every record, yielding after each piece; raises CorruptBatch, KafkaError, OSError."""
    for piece in batches_in_pieces(partition_log, partition_log.log_end_offset):
        for batch in piece:
            if batch.header.is_control:
                continue
            for record in batch.records():
                if record.key is not None:
                    shard.replay(record.key, record.value)
        yield
