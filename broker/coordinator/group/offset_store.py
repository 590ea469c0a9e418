"""The committed offsets of a shard's groups: by group, topic, partition."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.model import TopicPartition

NO_TOPIC_ID = bytes(16)
NO_TIMESTAMP = -1


class OffsetAndMetadata(NamedTuple):
    """What a group committed for one partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    """Set by OffsetCommit v2-4 with a retention time; otherwise the broker's retention holds."""
    topic_id: bytes = NO_TOPIC_ID

    def belongs_to(self, topic_id: bytes) -> bool:
        """Tell whether this may be the topic with that id; an unknown id matches every topic."""
        return NO_TOPIC_ID in (self.topic_id, topic_id) or self.topic_id == topic_id


@dataclass(slots=True)
class OffsetStore:
    """Invariant: no empty inner dictionaries, so a group with no offsets is not in the store."""

    _groups: dict[str, dict[str, dict[int, OffsetAndMetadata]]] = field(default_factory=dict)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def group_ids(self) -> list[str]:
        """Return the groups that have offsets."""
        return list(self._groups)

    def put(self, group_id: str, partition: TopicPartition, committed: OffsetAndMetadata) -> None:
        """Remember a committed offset."""
        topics = self._groups.setdefault(group_id, {})
        topics.setdefault(partition.topic, {})[partition.partition] = committed

    def get(self, group_id: str, topic: str, partition: int) -> OffsetAndMetadata | None:
        """Return what is committed for a partition."""
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """Forget a committed offset; not having one is fine."""
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
