"""A consumer group (KIP-848): its epochs, its members, and the owner of each partition.

    group_epoch              counts changes of members, subscriptions and topics
    target_epoch             the group epoch that `targets` was computed for
    member_epoch, of each    the target epoch that the member has reached

    EMPTY          no members
    ASSIGNING      target_epoch < group_epoch
    RECONCILING    a member has not reached its target
    STABLE         every member has reached its target

The state is not stored: it follows from the epochs. Each member reaches its target by its own
heartbeats (`reconciliation.py`): it revokes partitions before it gets a new epoch, and it gets a
partition only once no other member owns it.

Invariants (`check`, which the simulator calls after every event):

- member_epoch <= target_epoch <= group_epoch; group_epoch and target_epoch only grow.
- A partition has at most one owner, and `owners` equals the sum of the members' assignments.
- No two targets share a partition.
- An instance id maps to the one member that has it.
- `topic_counts` and `regex_counts` count the subscriptions of the members.

Only the methods under "replay" change persisted state, each for one kind of record.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from broker.coordinator.consumer_group.member import (
    Assignment,
    ConsumerMember,
    CurrentAssignment,
    MemberState,
    MemberSubscription,
    Owned,
)
from broker.coordinator.consumer_group.new_targets import NewTargets
from broker.coordinator.consumer_group.regex import Matching, ResolvedRegex
from broker.coordinator.group_state.modern_group import known_member


class ConsumerGroupState(Enum):
    """The state of a group; the values are those that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerDeadline(Enum):
    """The purpose of a deadline of a consumer group."""

    SESSION = "a member's session"
    REVOCATION = "the time to revoke partitions"
    CLASSIC_JOIN = "a classic member's time to join again"
    CLASSIC_SYNC = "a classic member's time to sync"
    MATCHING = "the rest of the topics for a pattern"
    ASSIGNING = "the rest of the targets"


@dataclass(slots=True)
class ConsumerGroup:
    """The state of one group. Its methods send no answers."""

    KIND: ClassVar = "a consumer group"
    group_id: str
    group_epoch: int = 0
    metadata_hash: int = 0  # of the subscribed topics, at the group epoch
    target_epoch: int = 0
    assignment_timestamp_ms: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)  # by id, in order of arrival
    targets: dict[str, Assignment] = field(default_factory=dict)  # by member id
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)  # by pattern
    static_member_ids: dict[str, str] = field(default_factory=dict)  # by instance id
    owners: dict[bytes, dict[int, str]] = field(default_factory=dict)  # by topic id and partition
    topic_counts: Counter[str] = field(default_factory=Counter)
    regex_counts: Counter[str] = field(default_factory=Counter)

    # Soft state: it is not in the log and starts empty after a reload.
    seen_versions: tuple[int, int] = (-1, -1)  # of the topics and the rules, at the last refresh
    matchings: dict[str, Matching] = field(default_factory=dict)
    new_targets: NewTargets | None = None

    # Queries.

    @property
    def state(self) -> ConsumerGroupState:
        """The state that follows from the epochs."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(map(self.has_reached_target, self.members.values())):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def has_reached_target(self, member: ConsumerMember) -> bool:
        """Return True if a member has exactly its target assignment."""
        current = member.current
        return current.state is MemberState.STABLE and current.member_epoch == self.target_epoch

    def member(self, member_id: str) -> ConsumerMember:
        """Return a member; raise UNKNOWN_MEMBER_ID."""
        return known_member(self.members, member_id, self.group_id)

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """Return the member with an instance id."""
        member_id = self.static_member_ids.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def owner_of(self, topic_id: bytes, partition: int) -> str | None:
        """Return the id of the member that owns a partition or has yet to revoke it."""
        return self.owners.get(topic_id, {}).get(partition)

    def topics_of(self, subscription: MemberSubscription) -> frozenset[str]:
        """Return the topics of a member; those of a pattern once the pattern is resolved."""
        resolved = self.regexes.get(subscription.topic_regex)
        return subscription.topic_names | (frozenset() if resolved is None else resolved.topics)

    def subscribed_topics(self) -> frozenset[str]:
        """Return the topics of all members."""
        names = frozenset(self.topic_counts)
        return names.union(*(each.topics for each in self.regexes.values()))

    def is_subscribed_to(self, topic: str) -> bool:
        """Return True if a member subscribes to the topic."""
        return topic in self.topic_counts or any(
            topic in each.topics for each in self.regexes.values()
        )

    # Replay. After compaction of the log, a group's records may be in any order.

    def replay_subscription(self, member_id: str, subscription: MemberSubscription | None) -> None:
        """Add a member, change its subscription, or remove it."""
        member = self.members.get(member_id)
        if subscription is None:
            if member is not None:
                self._withdraw(member)
                self._disown(member)
                del self.members[member_id]
            return
        if member is None:
            member = ConsumerMember(member_id, subscription, CurrentAssignment())
            self.members[member_id] = member
        else:
            self._withdraw(member)
        member.subscription = subscription
        self.topic_counts.update(subscription.topic_names)
        if subscription.topic_regex:
            self.regex_counts[subscription.topic_regex] += 1
        if subscription.instance_id is not None:
            self.static_member_ids[subscription.instance_id] = member_id

    def replay_current(self, member_id: str, current: CurrentAssignment | None) -> None:
        """Change a member's epoch and assignment, or clear them."""
        member = self.members.get(member_id)
        if member is None:
            if current is None:
                return
            member = ConsumerMember(member_id, MemberSubscription(), current)
            self.members[member_id] = member
        else:
            self._disown(member)
        current = current or CurrentAssignment()
        member.current = current
        for owned in (current.assigned, current.pending_revocation):
            for topic_id, partitions in owned.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def replay_target(self, member_id: str, target: Assignment | None) -> None:
        """Change or remove a member's target."""
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target

    def replay_regex(self, pattern: str, resolved: ResolvedRegex | None) -> None:
        """Change the topics of a pattern, or remove the pattern."""
        if resolved is None:
            self.regexes.pop(pattern, None)
        else:
            self.regexes[pattern] = resolved

    def _withdraw(self, member: ConsumerMember) -> None:
        subscription = member.subscription
        count_down(self.topic_counts, subscription.topic_names)
        if subscription.topic_regex:
            count_down(self.regex_counts, (subscription.topic_regex,))
        instance_id = subscription.instance_id
        if instance_id is not None and self.static_member_ids.get(instance_id) == member.member_id:
            del self.static_member_ids[instance_id]

    def _disown(self, member: ConsumerMember) -> None:
        current = member.current
        for owned in (current.assigned, current.pending_revocation):
            for topic_id, partitions in owned.items():
                owners = self.owners.get(topic_id, {})
                for partition in partitions:
                    # The record of the new owner may be earlier in the log.
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    self.owners.pop(topic_id, None)

    def check(self) -> None:
        """Assert the invariants of the module docstring."""
        assert self.target_epoch <= self.group_epoch, self
        owners: dict[tuple[bytes, int], str] = {}
        for member in self.members.values():
            assert member.member_epoch <= self.target_epoch, (member, self.target_epoch)
            for owned in (member.current.assigned, member.current.pending_revocation):
                for partition in partitions_of(owned):
                    assert partition not in owners, (partition, owners[partition], member)
                    owners[partition] = member.member_id
        assert owners == {
            (topic_id, partition): owner
            for topic_id, partitions in self.owners.items()
            for partition, owner in partitions.items()
        }, self
        wanted = [each for target in self.targets.values() for each in partitions_of(target)]
        assert len(wanted) == len(set(wanted)), self
        subscriptions = [member.subscription for member in self.members.values()]
        assert self.topic_counts == Counter(
            name for each in subscriptions for name in each.topic_names
        ), self
        assert self.regex_counts == Counter(
            each.topic_regex for each in subscriptions if each.topic_regex
        ), self
        assert self.static_member_ids == {
            member.instance_id: member.member_id
            for member in self.members.values()
            if member.instance_id is not None
        }, self


def partitions_of(assignment: Assignment | Owned) -> list[tuple[bytes, int]]:
    """Return the partitions as pairs of topic id and partition."""
    return [
        (topic_id, partition)
        for topic_id, partitions in assignment.items()
        for partition in partitions
    ]


def count_down(counts: Counter[str], names: frozenset[str] | tuple[str, ...]) -> None:
    """Withdraw a subscription to these names."""
    for name in names:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]
