"""The partitions of a group, by what the share coordinator has of them; one record of the log.

initializing   the share coordinator was asked to begin their state, and has not confirmed it
initialized    their state has begun: only these are assigned to members
deleting       topics whose state is to be deleted
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

Partitions = Mapping[bytes, Collection[int]]
"""Partitions by topic id."""


class NamedPartitions(NamedTuple):
    """Partitions of one topic, with the name that the topic had."""

    name: str
    partitions: frozenset[int]


Named = Mapping[bytes, NamedPartitions]


@dataclass(frozen=True, slots=True)
class StatePartitions:
    """A partition is in both lists while its state is begun again. Invariant: no set is empty."""

    initializing: Named = field(default_factory=dict)
    initialized: Named = field(default_factory=dict)
    deleting: Mapping[bytes, str] = field(default_factory=dict)
    """Topic names by id."""

    def initialized_of(self, topic_id: bytes) -> frozenset[int]:
        """Return the partitions of a topic that have state."""
        named = self.initialized.get(topic_id)
        return frozenset() if named is None else named.partitions

    def all_of(self, topic_id: bytes) -> frozenset[int]:
        """Return the partitions of a topic that have state or are to get it."""
        named = self.initializing.get(topic_id)
        begun = self.initialized_of(topic_id)
        return begun if named is None else begun | named.partitions

    def topic_ids(self) -> list[bytes]:
        """Return all topics, in one order."""
        return sorted({*self.initializing, *self.initialized, *self.deleting})

    def begun(self, wanted: Named) -> "StatePartitions":
        """Return this with partitions whose state is to begin, be it a second time."""
        return replace(
            self,
            initializing=_added(self.initializing, wanted),
            deleting={
                topic_id: name for topic_id, name in self.deleting.items() if topic_id not in wanted
            },
        )

    def confirmed(self, done: Partitions) -> "StatePartitions":
        """Return this after the share coordinator has begun the state of these partitions."""
        confirmed = {
            topic_id: NamedPartitions(named.name, named.partitions & frozenset(done[topic_id]))
            for topic_id, named in self.initializing.items()
            if topic_id in done
        }
        return replace(
            self,
            initializing=_removed(self.initializing, done),
            initialized=_added(self.initialized, confirmed),
        )

    def failed(self, refused: Partitions) -> "StatePartitions":
        """Return this after the share coordinator has refused these partitions."""
        return replace(self, initializing=_removed(self.initializing, refused))

    def to_delete(self, names: Mapping[bytes, str]) -> "StatePartitions":
        """Return this with topics whose state is to be deleted."""
        return replace(
            self,
            initializing=_without(self.initializing, names),
            initialized=_without(self.initialized, names),
            deleting={**self.deleting, **names},
        )

    def without(self, topic_ids: Iterable[bytes]) -> "StatePartitions":
        """Return this without topics that have no state."""
        gone = frozenset(topic_ids)
        return StatePartitions(
            _without(self.initializing, gone),
            _without(self.initialized, gone),
            {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in gone},
        )


def _added(to: Named, more: Named) -> dict[bytes, NamedPartitions]:
    added = dict(to)
    for topic_id, named in more.items():
        if named.partitions:
            before = to[topic_id].partitions if topic_id in to else frozenset()
            added[topic_id] = NamedPartitions(named.name, before | named.partitions)
    return added


def _removed(named: Named, partitions: Partitions) -> dict[bytes, NamedPartitions]:
    left: dict[bytes, NamedPartitions] = {}
    for topic_id, each in named.items():
        kept = each.partitions - frozenset(partitions.get(topic_id, ()))
        if kept:
            left[topic_id] = NamedPartitions(each.name, kept)
    return left


def _without(named: Named, topic_ids: Collection[bytes]) -> dict[bytes, NamedPartitions]:
    return {topic_id: each for topic_id, each in named.items() if topic_id not in topic_ids}
