"""A share group (KIP-932): its epochs, its members, and the partitions that have state.

    group_epoch              counts changes of members, subscriptions and topics
    target_epoch             the group epoch that `targets` was computed for
    member_epoch, of each    the target epoch that the member has reached

    EMPTY    no members
    STABLE   members; whether they have reached their targets does not matter

Invariants (`check`, which the simulator calls after every event):

- member_epoch <= target_epoch <= group_epoch; group_epoch and target_epoch only grow.
- A target has only partitions that had state when it was computed.
- `topic_counts` counts the subscriptions of the members.

Only the methods under "replay" change persisted state, each for one kind of record.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from broker.coordinator.consumer_group.consumer_group import count_down
from broker.coordinator.consumer_group.member import Assignment
from broker.coordinator.consumer_group.new_targets import NewTargets
from broker.coordinator.group_state.modern_group import known_member
from broker.coordinator.share_group.state_partitions import StatePartitions

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
MAX_MEMBER_ID_CHARACTERS = 36
"""The length of a UUID, which is what clients choose."""


@dataclass(frozen=True, slots=True)
class ShareSubscription:
    """The fields that a member sends about itself."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ShareAssignment:
    """The partitions of a member, which it may share with others."""

    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    partitions: Assignment = field(default_factory=dict)


@dataclass(slots=True)
class ShareMember:
    """One member, with both its records."""

    member_id: str
    subscription: ShareSubscription
    current: ShareAssignment

    @property
    def member_epoch(self) -> int:
        """The epoch that it confirms with every heartbeat."""
        return self.current.member_epoch


class ShareGroupState(Enum):
    """The state of a group; the values are those that clients see."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class ShareDeadline(Enum):
    """The purpose of a deadline of a share group."""

    SESSION = "a member's session"
    ASSIGNING = "the rest of the targets"


@dataclass(slots=True)
class ShareGroup:
    """The state of one group. Its methods send no answers."""

    KIND: ClassVar = "a share group"
    group_id: str
    group_epoch: int = 0
    metadata_hash: int = 0  # of the subscribed topics, at the group epoch
    target_epoch: int = 0
    assignment_timestamp_ms: int = 0
    members: dict[str, ShareMember] = field(default_factory=dict)  # by id, in order of arrival
    targets: dict[str, Assignment] = field(default_factory=dict)  # by member id
    states: StatePartitions = field(default_factory=StatePartitions)
    topic_counts: Counter[str] = field(default_factory=Counter)

    # Soft state: it is not in the log and starts empty after a reload.
    seen_topics_version: int = -1  # the version of the cluster's topics at the last refresh
    initializing_since_ms: dict[bytes, int] = field(default_factory=dict)  # by topic, wall time
    begun_at: dict[bytes, dict[int, int]] = field(default_factory=dict)
    """By topic and partition, the start offsets of state that is not known to have begun."""
    new_targets: NewTargets | None = None

    @property
    def state(self) -> ShareGroupState:
        """The state that clients see."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    def member(self, member_id: str) -> ShareMember:
        """Return a member; raise UNKNOWN_MEMBER_ID."""
        return known_member(self.members, member_id, self.group_id)

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics of all members."""
        return frozenset(self.topic_counts)

    # Replay. After compaction of the log, a group's records may be in any order.

    def replay_subscription(self, member_id: str, subscription: ShareSubscription | None) -> None:
        """Add a member, change its subscription, or remove it."""
        member = self.members.get(member_id)
        if member is not None:
            count_down(self.topic_counts, member.subscription.topic_names)
        if subscription is None:
            self.members.pop(member_id, None)
            return
        if member is None:
            self.members[member_id] = ShareMember(member_id, subscription, ShareAssignment())
        else:
            member.subscription = subscription
        self.topic_counts.update(subscription.topic_names)

    def replay_current(self, member_id: str, current: ShareAssignment | None) -> None:
        """Change a member's epoch and assignment, or clear them."""
        member = self.members.get(member_id)
        if member is not None:
            member.current = current or ShareAssignment()
        elif current is not None:
            self.members[member_id] = ShareMember(member_id, ShareSubscription(), current)

    def replay_target(self, member_id: str, target: Assignment | None) -> None:
        """Change or remove a member's target."""
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target

    def check(self) -> None:
        """Assert the invariants of the module docstring."""
        assert self.target_epoch <= self.group_epoch, self
        for member in self.members.values():
            assert member.member_epoch <= self.target_epoch, (member, self.target_epoch)
        assert self.topic_counts == Counter(
            name for member in self.members.values() for name in member.subscription.topic_names
        ), self
        for named in (*self.states.initializing.values(), *self.states.initialized.values()):
            assert named.partitions, self
