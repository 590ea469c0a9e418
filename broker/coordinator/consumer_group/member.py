"""One member of a consumer group: its subscription and its current assignment.

Both are immutable, and each is one record of the log: a change makes a new object. The target
assignment belongs to the group (`consumer_group.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from broker.coordinator.classic_group.member import MemberProtocol

Assignment = Mapping[bytes, frozenset[int]]
"""Partitions by topic id, without empty sets."""

Owned = Mapping[bytes, Mapping[int, int]]
"""By topic id and partition, the epoch in which the member got it, without empty mappings."""

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2


class MemberState(IntEnum):
    """The progress of a member towards its target; the values are those of the records.

    STABLE                 it has its target assignment
    UNREVOKED_PARTITIONS   it must revoke partitions and has not confirmed it
    UNRELEASED_PARTITIONS  it waits for partitions that other members have not revoked
    UNKNOWN                a state that a newer version has written
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """The JoinGroup fields of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[MemberProtocol, ...]


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """The fields that a member sends about itself."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""  # empty for none
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None

    @property
    def topics(self) -> tuple[frozenset[str], str]:
        """The fields that decide which topics the member reads."""
        return self.topic_names, self.topic_regex


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """A member's assignment. It is the only owner of each partition in either mapping.

    Invariant: `member_epoch` decreases only when the member leaves (-1, -2) or joins again (0).
    """

    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default_factory=dict)
    pending_revocation: Owned = field(default_factory=dict)

    @property
    def held(self) -> Assignment:
        """All partitions that the member owns, with those that it must revoke."""
        return {
            topic_id: frozenset(self.assigned.get(topic_id, ()))
            | frozenset(self.pending_revocation.get(topic_id, ()))
            for topic_id in {**self.assigned, **self.pending_revocation}
        }

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch in which the member got a partition; None if it does not own it."""
        for owned in (self.assigned, self.pending_revocation):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


@dataclass(slots=True)
class ConsumerMember:
    """One member, with both its records."""

    member_id: str
    subscription: MemberSubscription
    current: CurrentAssignment

    @property
    def instance_id(self) -> str | None:
        """The name of a static member, which stays the same when its process restarts."""
        return self.subscription.instance_id

    @property
    def uses_classic_protocol(self) -> bool:
        """True if it uses JoinGroup and SyncGroup (KIP-848, online migration)."""
        return self.subscription.classic is not None

    @property
    def member_epoch(self) -> int:
        """The epoch that it confirms with every heartbeat."""
        return self.current.member_epoch

    @property
    def has_left_for_a_while(self) -> bool:
        """True for a static member that has left temporarily."""
        return self.current.member_epoch == STATIC_LEAVE_EPOCH


def same_partitions(one: Owned, other: Owned) -> bool:
    """Return True if both have the same partitions, in whatever epochs."""
    return one.keys() == other.keys() and all(
        one[topic_id].keys() == other[topic_id].keys() for topic_id in one
    )
