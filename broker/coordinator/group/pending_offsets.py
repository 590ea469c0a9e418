"""Offsets that were committed in transactions which are open still.

A pending offset becomes the committed one with its transaction's commit, if nothing was written for
the same partition since: what counts is the order in the log, not that of the markers. So an offset
that a later commit has overtaken stays here, as None, until its transaction ends: the partition is
not stable before.

A marker may end very many offsets, and in one step, for all of them count or none: they are gone
through topic by topic, in plain dictionaries, at half a microsecond each.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.coordinator.group.offset import OffsetAndMetadata
from broker.model import TopicPartition

Waiting = dict[int, OffsetAndMetadata | None]
"""Producer id -> its offset for one partition, in the order of the log."""


class GroupPartition(NamedTuple):
    """What an offset is of."""

    group_id: str
    partition: TopicPartition


class GroupTopic(NamedTuple):
    """What the offsets of one topic are of."""

    group_id: str
    topic: str


@dataclass(slots=True)
class PendingOffsets:
    """Invariants: both maps name the same producers and partitions; no empty inner ones."""

    _by_group: dict[str, dict[str, dict[int, Waiting]]] = field(default_factory=dict)
    _by_producer: dict[int, dict[GroupTopic, dict[int, None]]] = field(default_factory=dict)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._by_group

    def group_ids(self) -> list[str]:
        """Return the groups with open transactions."""
        return list(self._by_group)

    def has(self, group_id: str, partition: TopicPartition) -> bool:
        """Tell whether a partition's offset may yet change by a transaction."""
        return bool(self._waiting(group_id, partition))

    def _waiting(self, group_id: str, partition: TopicPartition) -> Waiting:
        topic, number = partition
        return self._by_group.get(group_id, {}).get(topic, {}).get(number, {})

    def add(self, producer_id: int, place: GroupPartition, offset: OffsetAndMetadata) -> None:
        """Take in an offset of an open transaction."""
        group_id, (topic, number) = place
        partitions = self._by_group.setdefault(group_id, {}).setdefault(topic, {})
        waiting = partitions.setdefault(number, {})
        waiting.pop(producer_id, None)
        waiting[producer_id] = offset
        topics = self._by_producer.setdefault(producer_id, {})
        topics.setdefault(GroupTopic(group_id, topic), {})[number] = None

    def overtake(self, place: GroupPartition) -> None:
        """Note that something else was committed for a partition after all that waits."""
        waiting = self._waiting(*place)
        waiting.update(dict.fromkeys(waiting))

    def remove(self, place: GroupPartition) -> None:
        """Forget what waits for a partition: its offset has been deleted."""
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
        """End a producer's transaction; gives the offsets that are committed by that."""
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
        """Return the partitions for which something of a group waits."""
        return [
            TopicPartition(topic, number)
            for topic, partitions in self._by_group.get(group_id, {}).items()
            for number in partitions
        ]

    def of_topic(self, topic: str) -> Iterator[tuple[GroupPartition, list[OffsetAndMetadata]]]:
        """Yield what waits for a topic's partitions."""
        for group_id, topics in self._by_group.items():
            for number, waiting in topics.get(topic, {}).items():
                offsets = [offset for offset in waiting.values() if offset is not None]
                yield GroupPartition(group_id, TopicPartition(topic, number)), offsets


def overtake_earlier(waiting: Waiting, producer_id: int) -> None:
    """Note that what a producer commits now was written after what others had written before."""
    for earlier in list(waiting):
        if earlier == producer_id:
            return
        waiting[earlier] = None
