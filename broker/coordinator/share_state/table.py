"""The share-partitions of one shard, and the offsets of their latest snapshots."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from broker.coordinator.output import BATCH_OVERHEAD_BYTES, Output, record_size_bytes
from broker.coordinator.share_state.records import (
    Content,
    UpdateOf,
    snapshot_record,
    update_record,
)
from broker.coordinator.share_state.state import (
    SharePartition,
    SharePartitionKey,
    first_known_by,
)
from common.kafka.errors import ErrorCode, KafkaError


@dataclass(slots=True)
class Kept:
    """A share-partition, and where it is in the log."""

    state: SharePartition
    snapshot_offset: int
    """The offset of its latest snapshot."""
    update_count: int = 0
    """The updates since then."""


@dataclass(slots=True)
class SharePartitions:
    """The tables of a shard.

    Invariants: `next_offset` is not beyond the end of the log, as this shard alone writes to it;
    everything that is kept can be replayed from `oldest_snapshot_offset` on.
    """

    max_batch_bytes: int
    kept: dict[SharePartitionKey, Kept] = field(default_factory=dict)
    next_offset: int = 0
    """The offset of the next record."""

    def state_of(self, key: SharePartitionKey) -> SharePartition | None:
        """Return the state of a share-partition, None if it has none."""
        kept = self.kept.get(key)
        return None if kept is None else kept.state

    def put(self, key: SharePartitionKey, content: Content, offset: int) -> None:
        """Apply one record, which is at `offset`."""
        self.next_offset = offset + 1
        if content is None:
            self.kept.pop(key, None)
            return
        kept = self.kept.get(key)
        if isinstance(content, UpdateOf):
            if kept is None:
                state = first_known_by(content.update, content.snapshot_epoch)
                self.kept[key] = Kept(state, offset, update_count=1)
            else:
                kept.state = kept.state.updated(content.update)
                kept.update_count += 1
            return
        if kept is not None:
            content = replace(
                content,
                leader_epoch=max(content.leader_epoch, kept.state.leader_epoch),
                state_epoch=max(content.state_epoch, kept.state.state_epoch),
            )
        self.kept[key] = Kept(content, offset)

    def write(self, output: Output, key: SharePartitionKey, content: Content) -> None:
        """Append a record to an output, and apply it.

        Raise UNKNOWN_SERVER_ERROR, as Kafka does, if it does not fit into a batch.
        """
        if isinstance(content, UpdateOf):
            record = update_record(key, content.update, content.snapshot_epoch)
        else:
            record = snapshot_record(key, content)
        if BATCH_OVERHEAD_BYTES + record_size_bytes(record) > self.max_batch_bytes:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, "The share-partition has too many state batches."
            )
        output.records.append(record)
        self.put(key, content, self.next_offset)

    def oldest_snapshot_offset(self) -> int:
        """Return the offset below which no record is necessary."""
        return min((kept.snapshot_offset for kept in self.kept.values()), default=self.next_offset)

    def of_topics(self, topic_ids: Collection[bytes]) -> Iterator[SharePartitionKey]:
        """Yield the share-partitions of some topics."""
        return (key for key in self.kept if key.topic_id in topic_ids)
