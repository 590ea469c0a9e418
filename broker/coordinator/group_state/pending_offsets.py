"""Offsets that were committed in open transactions.

A pending offset becomes the committed one with its transaction's commit, unless a later offset was
written for the same partition: the order of the records counts, and not that of the markers. An
offset that a later commit has overtaken stays here, as None, until its transaction ends, because
the partition is not stable before that.

One marker may end very many offsets, and it must end all of them at once. So they are stored in
plain dictionaries by topic, which takes about half a microsecond per offset.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.model import TopicPartition

NO_TOPIC_ID = bytes(16)
NO_TIMESTAMP = -1


class OffsetAndMetadata(NamedTuple):
    """The offset that a group committed for one partition, with its metadata."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = NO_TIMESTAMP
    expire_timestamp_ms: int = NO_TIMESTAMP
    """Set by OffsetCommit v2-4 with a retention time; else `offsets.retention.minutes` applies."""
    topic_id: bytes = NO_TOPIC_ID

    def belongs_to(self, topic_id: bytes) -> bool:
        """Return True if this offset may belong to the topic id; an unknown id matches all."""
        return NO_TOPIC_ID in (self.topic_id, topic_id) or self.topic_id == topic_id


Waiting = dict[int, OffsetAndMetadata | None]
"""The pending offsets of one partition by producer id, in log order; None: overtaken."""


class GroupPartition(NamedTuple):
    """The key of an offset."""

    group_id: str
    partition: TopicPartition


class GroupTopic(NamedTuple):
    """The key of the offsets of one topic."""

    group_id: str
    topic: str


@dataclass(slots=True)
class PendingOffsets:
    """Invariants: both maps have the same producers and partitions; no inner map is empty."""

    _by_group: dict[str, dict[str, dict[int, Waiting]]] = field(default_factory=dict)
    _by_producer: dict[int, dict[GroupTopic, dict[int, None]]] = field(default_factory=dict)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._by_group

    def group_ids(self) -> list[str]:
        """Return the groups with open transactions."""
        return list(self._by_group)

    def has(self, group_id: str, partition: TopicPartition) -> bool:
        """Return True if an open transaction may change a partition's offset."""
        return bool(self._waiting(group_id, partition))

    def _waiting(self, group_id: str, partition: TopicPartition) -> Waiting:
        topic, number = partition
        return self._by_group.get(group_id, {}).get(topic, {}).get(number, {})

    def add(self, producer_id: int, place: GroupPartition, offset: OffsetAndMetadata) -> None:
        """Add an offset of an open transaction."""
        group_id, (topic, number) = place
        partitions = self._by_group.setdefault(group_id, {}).setdefault(topic, {})
        waiting = partitions.setdefault(number, {})
        waiting.pop(producer_id, None)
        waiting[producer_id] = offset
        topics = self._by_producer.setdefault(producer_id, {})
        topics.setdefault(GroupTopic(group_id, topic), {})[number] = None

    def overtake(self, place: GroupPartition) -> None:
        """Note that a later offset than all pending ones was committed for a partition."""
        waiting = self._waiting(*place)
        waiting.update(dict.fromkeys(waiting))

    def remove(self, place: GroupPartition) -> None:
        """Remove the pending offsets of a partition, because its offset was deleted."""
        group_id, (topic, number) = place
        of_topic = GroupTopic(group_id, topic)
        for producer_id in self._waiting(*place):
            topics = self._by_producer[producer_id]
            del topics[of_topic][number]
            if not topics[of_topic]:
                del topics[of_topic]
            if not topics:
                del self._by_producer[producer_id]
        self._by_group.get(group_id, {}).get(topic, {}).pop(number, None)
        self._forget_if_empty(of_topic)

    def _forget_if_empty(self, of_topic: GroupTopic) -> None:
        group_id, topic = of_topic
        topics = self._by_group.get(group_id, {})
        if not topics.get(topic):
            topics.pop(topic, None)
        if not topics:
            self._by_group.pop(group_id, None)

    def end(
        self, producer_id: int, *, is_commit: bool
    ) -> list[tuple[GroupTopic, dict[int, OffsetAndMetadata]]]:
        """End a producer's transaction; return the offsets that it commits."""
        ended = []
        for of_topic, numbers in self._by_producer.pop(producer_id, {}).items():
            partitions = self._by_group[of_topic.group_id][of_topic.topic]
            committed: dict[int, OffsetAndMetadata] = {}
            for number in numbers:
                waiting = partitions[number]
                offset = waiting[producer_id]
                if offset is not None and is_commit:
                    committed[number] = offset
                    if len(waiting) > 1:
                        overtake_earlier(waiting, producer_id)
                del waiting[producer_id]
                if not waiting:
                    del partitions[number]
            self._forget_if_empty(of_topic)
            if committed:
                ended.append((of_topic, committed))
        return ended

    def of_group(self, group_id: str) -> list[TopicPartition]:
        """Return the partitions for which a group has pending offsets."""
        return [
            TopicPartition(topic, number)
            for topic, partitions in self._by_group.get(group_id, {}).items()
            for number in partitions
        ]

    def of_topic(self, topic: str) -> Iterator[tuple[GroupPartition, list[OffsetAndMetadata]]]:
        """Yield the pending offsets of a topic's partitions."""
        for group_id, topics in self._by_group.items():
            for number, waiting in topics.get(topic, {}).items():
                offsets = [offset for offset in waiting.values() if offset is not None]
                yield GroupPartition(group_id, TopicPartition(topic, number)), offsets


def overtake_earlier(waiting: Waiting, producer_id: int) -> None:
    """Mark the pending offsets that were written before this producer's as overtaken."""
    for earlier in list(waiting):
        if earlier == producer_id:
            return
        waiting[earlier] = None
