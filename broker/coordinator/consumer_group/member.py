"""One member of a consumer group: what it wants, and what it has.

Both halves are immutable and each is one record of the log: a change is a new half. What the group
wants the member to have, its target, is the group's (`consumer_group.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from broker.coordinator.group.member import MemberProtocol

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id. No empty sets."""

Owned = Mapping[bytes, Mapping[int, int]]
"""Partitions by topic id, each with the epoch in which the member got it. No empty mappings."""

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


class MemberState(IntEnum):
    """Where a member is on its way to its target (the values are those of the records).

    STABLE                 it has all that the group wants it to have
    UNREVOKED_PARTITIONS   it has been told to give partitions up, and has not confirmed it
    UNRELEASED_PARTITIONS  some of what it is to have is not given up by another member yet
    UNKNOWN                written by a software that is newer
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """What a member of the classic protocol said when it joined."""

    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """What a member says of itself."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""  # the empty one is none
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None

    @property
    def topics(self) -> tuple[frozenset[str], str]:
        """What decides which topics the member reads."""
        return self.topic_names, self.topic_regex


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """What a member has. A partition in either mapping is owned by it, and by nobody else.

    Invariant: `member_epoch` never goes back but by leaving (-1, -2) and joining again (0).
    """

    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    pending_revocation: Owned = field(default_factory=dict)

    @property
    def held(self) -> Assignment:
        """All that the member has, whether or not it is to give some of it up."""
        return {
            topic_id: frozenset(self.assigned.get(topic_id, ()))
            | frozenset(self.pending_revocation.get(topic_id, ()))
            for topic_id in {**self.assigned, **self.pending_revocation}
        }

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """Return since which epoch the member has a partition; None when it has not."""
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


@dataclass(slots=True)
class ConsumerMember:
    """One member, from both its halves."""

    member_id: str
    subscription: MemberSubscription
    current: CurrentAssignment

    @property
    def instance_id(self) -> str | None:
        """The name of a static member, that outlives its process."""
        return self.subscription.instance_id

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether it speaks JoinGroup and SyncGroup (KIP-848, online migration)."""
        return self.subscription.classic is not None

    @property
    def member_epoch(self) -> int:
        """The epoch it confirms with every heartbeat."""
        return self.current.member_epoch

    @property
    def has_left_for_a_while(self) -> bool:
        """Whether it is a static member whose process is gone, and may come back."""
        return self.current.member_epoch == STATIC_LEAVE_EPOCH


def same_partitions(one: Owned, other: Owned) -> bool:
    """Tell whether both are the same partitions, whatever their epochs."""
    return one.keys() == other.keys() and all(
        one[topic_id].keys() == other[topic_id].keys() for topic_id in one
    )
