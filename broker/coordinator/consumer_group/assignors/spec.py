"""The input of an assignor."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from broker.coordinator.consumer_group.member import Assignment

T = TypeVar("T")
Pieces: TypeAlias = Generator[int, None, T]
"""Interruptible work: each yield gives about how many members, topics and partitions it touched."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member: the existing topics that it subscribes to, and its present target."""

    topic_ids: frozenset[bytes]
    target: Assignment


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group to assign.

    Invariants: members are in the order of their ids; `partition_counts` has every topic that a
    member subscribes to; the present targets share no partition, and a member's target has only
    topics that it subscribes to.
    """

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]

    @property
    def is_homogeneous(self) -> bool:
        """True if all members subscribe to the same topics."""
        return len({member.topic_ids for member in self.members.values()}) <= 1


def make_spec(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> Pieces[GroupSpec]:
    """Build the specification; remove invalid and duplicate partitions from the present targets.

    Targets can share a partition: a log that was truncated between the batches of a large
    assignment has targets of two epochs.
    """
    taken: dict[bytes, set[int]] = {}
    kept: dict[str, MemberSpec] = {}
    for member_id, member in sorted(members.items()):
        target: dict[bytes, frozenset[int]] = {}
        for topic_id in member.target.keys() & member.topic_ids:
            others = taken.setdefault(topic_id, set())
            count = partition_counts[topic_id]
            partitions = member.target[topic_id]
            mine = frozenset(each for each in partitions if each < count and each not in others)
            others |= mine
            if mine:
                target[topic_id] = mine
            yield len(partitions)
        kept[member_id] = MemberSpec(member.topic_ids, target)
        yield len(member.topic_ids)
    return GroupSpec(kept, partition_counts)
