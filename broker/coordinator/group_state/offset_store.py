"""The offsets of a shard's groups, by group, topic and partition, and the pending ones.

An offset that was written outside a transaction is valid at once; one in a transaction becomes
valid with its commit (`pending_offsets`). A deletion removes both.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from broker.coordinator.group_state.pending_offsets import (
    NO_TIMESTAMP,
    NO_TOPIC_ID,
    GroupPartition,
    OffsetAndMetadata,
    PendingOffsets,
)
from broker.model import TopicPartition

__all__ = ["NO_TIMESTAMP", "NO_TOPIC_ID", "OffsetAndMetadata", "OffsetStore"]


@dataclass(slots=True)
class OffsetStore:
    """Invariant: no inner dictionary is empty, so a group without offsets is not in the store."""

    _groups: dict[str, dict[str, dict[int, OffsetAndMetadata]]] = field(default_factory=dict)
    pending: PendingOffsets = field(default_factory=PendingOffsets)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups or group_id in self.pending

    def group_ids(self) -> list[str]:
        """Return the groups that have committed or pending offsets."""
        return list(dict.fromkeys([*self._groups, *self.pending.group_ids()]))

    def put(self, group_id: str, partition: TopicPartition, committed: OffsetAndMetadata) -> None:
        """Store a committed offset."""
        self.pending.overtake(GroupPartition(group_id, partition))
        topics = self._groups.setdefault(group_id, {})
        topics.setdefault(partition.topic, {})[partition.partition] = committed

    def put_pending(
        self,
        producer_id: int,
        group_id: str,
        partition: TopicPartition,
        offset: OffsetAndMetadata,
    ) -> None:
        """Store an offset that becomes valid when its producer's transaction is committed."""
        self.pending.add(producer_id, GroupPartition(group_id, partition), offset)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Make a producer's pending offsets valid, or drop them."""
        for (group_id, topic), offsets in self.pending.end(producer_id, is_commit=is_commit):
            self._groups.setdefault(group_id, {}).setdefault(topic, {}).update(offsets)

    def get(self, group_id: str, topic: str, partition: int) -> OffsetAndMetadata | None:
        """Return the committed offset of a partition, or None."""
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """Remove the committed and pending offsets of a partition, if there are any."""
        self.pending.remove(GroupPartition(group_id, partition))
        topics = self._groups.get(group_id, {})
        partitions = topics.get(partition.topic, {})
        partitions.pop(partition.partition, None)
        if not partitions:
            topics.pop(partition.topic, None)
        if not topics:
            self._groups.pop(group_id, None)

    def topics_of(self, group_id: str) -> dict[str, dict[int, OffsetAndMetadata]]:
        """Return a group's committed offsets by topic and partition; callers must not change it."""
        return self._groups.get(group_id, {})

    def partitions_of(self, group_id: str) -> list[TopicPartition]:
        """Return the partitions for which a group has a committed or pending offset."""
        committed = [partition for partition, _ in self.of_group(group_id)]
        return list(dict.fromkeys([*committed, *self.pending.of_group(group_id)]))

    def has_any(self, group_id: str, partition: TopicPartition) -> bool:
        """Return True if there is a committed or pending offset."""
        committed = self.get(group_id, partition.topic, partition.partition)
        return committed is not None or self.pending.has(group_id, partition)

    def of_group(self, group_id: str) -> list[tuple[TopicPartition, OffsetAndMetadata]]:
        """Return a copy of a group's committed offsets."""
        return [
            (TopicPartition(topic, partition), committed)
            for topic, partitions in self.topics_of(group_id).items()
            for partition, committed in partitions.items()
        ]

    def of_topic(self, topic: str) -> Iterator[tuple[str, int, OffsetAndMetadata]]:
        """Yield (group id, partition, offset) of every group that committed to the topic."""
        for group_id, topics in self._groups.items():
            for partition, committed in topics.get(topic, {}).items():
                yield group_id, partition, committed
