"""The offsets of a shard's groups: by group, topic, partition; and those that are not decided yet.

An offset written outside a transaction counts at once, one of a transaction with its commit
(`pending_offsets`). A deletion takes both.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from broker.coordinator.group.offset import NO_TIMESTAMP, NO_TOPIC_ID, OffsetAndMetadata
from broker.coordinator.group.pending_offsets import GroupPartition, PendingOffsets
from broker.model import TopicPartition

__all__ = ["NO_TIMESTAMP", "NO_TOPIC_ID", "OffsetAndMetadata", "OffsetStore"]


@dataclass(slots=True)
class OffsetStore:
    """Invariant: no empty inner dictionaries, so a group with no offsets is not in the store."""

    _groups: dict[str, dict[str, dict[int, OffsetAndMetadata]]] = field(default_factory=dict)
    pending: PendingOffsets = field(default_factory=PendingOffsets)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups or group_id in self.pending

    def group_ids(self) -> list[str]:
        """Return the groups that have offsets, or may get some by a transaction."""
        return list(dict.fromkeys([*self._groups, *self.pending.group_ids()]))

    def put(self, group_id: str, partition: TopicPartition, committed: OffsetAndMetadata) -> None:
        """Remember a committed offset."""
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
        """Remember an offset that counts once its producer's transaction is committed."""
        self.pending.add(producer_id, GroupPartition(group_id, partition), offset)

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Let what a producer has pending count, or forget it."""
        for (group_id, topic), offsets in self.pending.end(producer_id, is_commit=is_commit):
            self._groups.setdefault(group_id, {}).setdefault(topic, {}).update(offsets)

    def get(self, group_id: str, topic: str, partition: int) -> OffsetAndMetadata | None:
        """Return what is committed for a partition."""
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """Forget a committed offset, and what waits to become one; having neither is fine."""
        self.pending.remove(GroupPartition(group_id, partition))
        topics = self._groups.get(group_id, {})
        partitions = topics.get(partition.topic, {})
        partitions.pop(partition.partition, None)
        if not partitions:
            topics.pop(partition.topic, None)
        if not topics:
            self._groups.pop(group_id, None)

    def topics_of(self, group_id: str) -> dict[str, dict[int, OffsetAndMetadata]]:
        """Return a group's offsets by topic and partition, to read and not to change."""
        return self._groups.get(group_id, {})

    def partitions_of(self, group_id: str) -> list[TopicPartition]:
        """Return every partition for which a group has an offset, committed or pending."""
        committed = [partition for partition, _ in self.of_group(group_id)]
        return list(dict.fromkeys([*committed, *self.pending.of_group(group_id)]))

    def has_any(self, group_id: str, partition: TopicPartition) -> bool:
        """Tell whether there is an offset, committed or pending."""
        committed = self.get(group_id, partition.topic, partition.partition)
        return committed is not None or self.pending.has(group_id, partition)

    def of_group(self, group_id: str) -> list[tuple[TopicPartition, OffsetAndMetadata]]:
        """Return a copy of a group's offsets."""
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
