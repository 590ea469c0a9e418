"""What an assignor is given, and the names of those there are."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from broker.coordinator.consumer_group.member import Assignment

T = TypeVar("T")
Steps: TypeAlias = Generator[int, None, T]
"""Work in steps: after each, about how many members, topics and partitions were touched in it."""

UNIFORM: Final = "uniform"
RANGE: Final = "range"


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member: the existing topics it subscribes to, and its target so far."""

    topic_ids: frozenset[bytes]
    target: Assignment


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group to be assigned.

    Invariants: members in the order of their ids; `partition_counts` has every topic that a member
    subscribes to; the targets so far share no partition, and have none of other topics.
    """

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        return len({member.topic_ids for member in self.members.values()}) <= 1


def make_spec(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> Steps[GroupSpec]:
    """Make the specification, taking from the targets so far what cannot stay.

    A log that was cut between the batches of a large assignment has targets of two epochs.
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
