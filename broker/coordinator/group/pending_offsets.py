"""Offsets that were committed in transactions which are open still.

A pending offset becomes the committed one with its transaction's commit, if nothing was written for
the same partition since: what counts is the order in the log, not that of the markers. So an offset
that a later commit has overtaken stays here, as None, until its transaction ends: the partition is
not stable before.
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


@dataclass(slots=True)
class PendingOffsets:
    """Invariants: both maps name the same pairs of producer and partition; no empty inner ones."""

    _by_group: dict[str, dict[TopicPartition, Waiting]] = field(default_factory=dict)
    _by_producer: dict[int, dict[GroupPartition, None]] = field(default_factory=dict)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._by_group

    def group_ids(self) -> list[str]:
        """Return the groups with open transactions."""
        return list(self._by_group)

    def has(self, group_id: str, partition: TopicPartition) -> bool:
        """Tell whether a partition's offset may yet change by a transaction."""
        return partition in self._by_group.get(group_id, ())

    def add(self, producer_id: int, place: GroupPartition, offset: OffsetAndMetadata) -> None:
        """Take in an offset of an open transaction."""
        waiting = self._by_group.setdefault(place.group_id, {}).setdefault(place.partition, {})
        waiting.pop(producer_id, None)
        waiting[producer_id] = offset
        self._by_producer.setdefault(producer_id, {})[place] = None

    def overtake(self, place: GroupPartition) -> None:
        """Note that something else was committed for a partition after all that waits."""
        waiting = self._by_group.get(place.group_id, {}).get(place.partition)
        if waiting is not None:
            waiting.update(dict.fromkeys(waiting))

    def remove(self, place: GroupPartition) -> None:
        """Forget what waits for a partition: its offset has been deleted."""
        for producer_id in self._by_group.get(place.group_id, {}).get(place.partition, ()):
            places = self._by_producer[producer_id]
            del places[place]
            if not places:
                del self._by_producer[producer_id]
        self._forget(place)

    def _forget(self, place: GroupPartition) -> None:
        partitions = self._by_group.get(place.group_id, {})
        partitions.pop(place.partition, None)
        if not partitions:
            self._by_group.pop(place.group_id, None)

    def end(
        self, producer_id: int, *, is_commit: bool
    ) -> list[tuple[GroupPartition, OffsetAndMetadata]]:
        """End a producer's transaction; gives the offsets that are committed by that."""
        committed: list[tuple[GroupPartition, OffsetAndMetadata]] = []
        for place in self._by_producer.pop(producer_id, {}):
            waiting = self._by_group[place.group_id][place.partition]
            offset = waiting[producer_id]
            if is_commit and offset is not None:
                committed.append((place, offset))
                for earlier in list(waiting):
                    if earlier == producer_id:
                        break
                    waiting[earlier] = None
            del waiting[producer_id]
            if not waiting:
                self._forget(place)
        return committed

    def of_group(self, group_id: str) -> list[TopicPartition]:
        """Return the partitions for which something of a group waits."""
        return list(self._by_group.get(group_id, ()))

    def of_topic(self, topic: str) -> Iterator[tuple[GroupPartition, list[OffsetAndMetadata]]]:
        """Yield what waits for a topic's partitions."""
        for group_id, partitions in self._by_group.items():
            for partition, waiting in partitions.items():
                if partition.topic == topic:
                    offsets = [offset for offset in waiting.values() if offset is not None]
                    yield GroupPartition(group_id, partition), offsets
