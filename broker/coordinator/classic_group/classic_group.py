"""A classic consumer group: its states, its members, and its invariants.

             new member joins                     all required members have joined
    EMPTY ───────────────────► PREPARING_REBALANCE ───────────────────► COMPLETING_REBALANCE
      ▲                          │      ▲      ▲                              │        │
      └──────────────────────────┘      │      └──────────────────────────────┘        │ the leader
        the last member has left        │    a member joins, changes or leaves         │ assigns
                                        └────────────────────────────────── STABLE ◄───┘
    any state ──► DEAD: deleted or expired; final.

EMPTY                 No members; the group is kept for its offsets and its generation. A group that
                      only commits offsets (a *simple* group) stays in this state.
PREPARING_REBALANCE   JoinGroup parks; a heartbeat returns REBALANCE_IN_PROGRESS. The state ends
when all members have joined, or at the rebalance timeout, which removes dynamic members that have
not. After EMPTY, it lasts for `group.initial.rebalance.delay.ms` instead, and longer while members
keep arriving, up to the rebalance timeout. COMPLETING_REBALANCE  The generation is fixed, and the
leader has the list of members. SyncGroup parks until the leader's SyncGroup has the assignment.
Commits are refused. STABLE                Every member has its assignment of this generation, and
it is in the log.

Invariants (`ClassicGroup.check`, which the simulator calls after every event):

- `generation_id` grows by exactly one when PREPARING_REBALANCE ends, and never otherwise.
- There is a leader if and only if there are members, and it is one of them.
- A static member's instance id maps to the one member that has it.
- Only members have parked requests: JoinGroup only in PREPARING, SyncGroup only in COMPLETING.
- From COMPLETING on, every member offers `protocol_name`; EMPTY has no members and no protocol.
- A pending member (it has received an id and not joined with it) is not a member.

Tables decide the answers: `TRANSITIONS` here, `ANSWER_TO_HEARTBEAT` in liveness.py.
Source: Kafka's classic group protocol; KIP-345 (static), KIP-394 (member id), KIP-134 (delay).
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from broker.coordinator.classic_group.member import (
    CONSUMER_PROTOCOL_TYPE,
    Member,
    MemberProtocol,
    subscribed_topics,
)
from broker.coordinator.output import Waiting
from common.kafka.errors import ErrorCode, KafkaError


class GroupState(Enum):
    """The state of a group; the values are those that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class GroupEvent(Enum):
    """The event that moves a group to another state."""

    REBALANCE = "a member joined, changed or left"
    JOINED = "all required members have joined"
    EMPTIED = "the last member has left"
    ASSIGNED = "the leader sent the assignment"
    REMOVED = "deleted or expired"


TRANSITIONS: dict[GroupState, dict[GroupEvent, GroupState]] = {
    GroupState.EMPTY: {
        GroupEvent.REBALANCE: GroupState.PREPARING_REBALANCE,
        GroupEvent.REMOVED: GroupState.DEAD,
    },
    GroupState.PREPARING_REBALANCE: {
        GroupEvent.JOINED: GroupState.COMPLETING_REBALANCE,
        GroupEvent.EMPTIED: GroupState.EMPTY,
        GroupEvent.REMOVED: GroupState.DEAD,
    },
    GroupState.COMPLETING_REBALANCE: {
        GroupEvent.REBALANCE: GroupState.PREPARING_REBALANCE,
        GroupEvent.ASSIGNED: GroupState.STABLE,
        GroupEvent.REMOVED: GroupState.DEAD,
    },
    GroupState.STABLE: {
        GroupEvent.REBALANCE: GroupState.PREPARING_REBALANCE,
        GroupEvent.REMOVED: GroupState.DEAD,
    },
    GroupState.DEAD: {},
}


@dataclass(slots=True)
class InitialDelay:
    """The delay of a group's first rebalance, which is extended while members keep arriving."""

    delay_ms: int
    remaining_ms: int
    member_arrived: bool = False


class ClassicDeadline(Enum):
    """The purpose of a deadline of a classic group."""

    JOIN = "end of the join phase"
    SYNC = "end of the wait for SyncGroup"
    SESSION = "a member's session"


@dataclass(slots=True)
class ClassicGroup:
    """The state of one group. Its methods keep the invariants and send no answers."""

    KIND: ClassVar = "a classic group"
    group_id: str
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    current_state_timestamp_ms: int = -1
    members: dict[str, Member] = field(default_factory=dict)  # by id, in the order of arrival
    static_member_ids: dict[str, str] = field(default_factory=dict)  # by instance id
    subscribed_topics: frozenset[str] | None = None  # None: unknown
    is_persisted: bool = False  # the log holds a group record, so removal needs a tombstone
    pending_member_ids: set[str] = field(default_factory=set)
    # Parked requests by member id; None: the connection is closed.
    awaiting_join: dict[str, Waiting | None] = field(default_factory=dict)
    awaiting_sync: dict[str, Waiting | None] = field(default_factory=dict)
    pending_sync_member_ids: set[str] = field(default_factory=set)
    initial_delay: InitialDelay | None = None
    supported_protocols: Counter[str] = field(default_factory=Counter)  # members by protocol

    # State.

    def can(self, event: GroupEvent) -> bool:
        """Return True if the event is legal in the present state."""
        return event in TRANSITIONS[self.state]

    def move(self, event: GroupEvent, timestamp_ms: int) -> None:
        """Make a transition of the table; an illegal one is a bug (AssertionError)."""
        assert self.can(event), (event, self.state, self.group_id)
        self.previous_state = self.state
        self.state = TRANSITIONS[self.state][event]
        self.current_state_timestamp_ms = timestamp_ms

    def begin_generation(self, timestamp_ms: int) -> None:
        """End PREPARING_REBALANCE: start the next generation with its protocol, or become EMPTY."""
        self.generation_id += 1
        self.initial_delay = None
        self.pending_sync_member_ids.clear()
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self.compute_subscribed_topics()
        self.move(GroupEvent.JOINED if self.members else GroupEvent.EMPTIED, timestamp_ms)

    # Members.

    def add(self, member: Member, protocol_type: str | None) -> None:
        """Add a member; the first one sets the protocol type and becomes the leader."""
        if not self.members:
            self.protocol_type = protocol_type
        assert self.protocol_type == protocol_type, (protocol_type, self)
        instance_id = member.group_instance_id
        if instance_id is not None:
            assert instance_id not in self.static_member_ids, (instance_id, self.group_id)
            self.static_member_ids[instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.supported_protocols.update(protocol.name for protocol in member.protocols)
        self.pending_member_ids.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending one; the caller has answered its parked requests."""
        assert member_id not in self.awaiting_join, (member_id, self.group_id)
        assert member_id not in self.awaiting_sync, (member_id, self.group_id)
        member = self.members.pop(member_id, None)
        if member is not None:
            self._withdraw_protocols(member)
            if member.group_instance_id is not None:
                del self.static_member_ids[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_member_ids.discard(member_id)
        self.pending_sync_member_ids.discard(member_id)

    def replace(self, old_member_id: str, member: Member) -> None:
        """Replace a static member by its next incarnation."""
        assert member.group_instance_id is not None, member
        was_leader = self.leader_id == old_member_id
        self.remove(old_member_id)
        self.add(member, self.protocol_type)
        if was_leader:
            self.leader_id = member.member_id

    def update(self, member: Member, protocols: tuple[MemberProtocol, ...]) -> None:
        """Replace a member's protocols."""
        self._withdraw_protocols(member)
        member.protocols = protocols
        self.supported_protocols.update(protocol.name for protocol in protocols)

    def elect_joined_leader(self) -> bool:
        """Elect another leader if the present one has not joined; return False if no member has."""
        if self.leader_id not in self.awaiting_join:
            joined = next((each for each in self.members if each in self.awaiting_join), None)
            if joined is None:
                return False
            self.leader_id = joined
        return True

    @property
    def has_all_members_joined(self) -> bool:
        """True if all members wait in JoinGroup, and there is no pending member."""
        return len(self.awaiting_join) == len(self.members) and not self.pending_member_ids

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def validate_member(self, member_id: str, group_instance_id: str | None) -> Member:
        """Return the member; raise UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if it was replaced."""
        if group_instance_id is not None:
            owner_id = self.static_member_ids.get(group_instance_id)
            if owner_id is not None and owner_id != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
            if owner_id is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    # Protocols.

    def supports_protocols(self, protocol_type: str, names: list[str]) -> bool:
        """Return True if one of these protocols is common to all members."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        return self.protocol_type == protocol_type and any(
            self.supported_protocols[name] == len(self.members) for name in names
        )

    def select_protocol(self) -> str:
        """Return the protocol with the most votes among those that all members offer."""
        candidates = {
            name for name, count in self.supported_protocols.items() if count == len(self.members)
        }
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    @property
    def uses_consumer_protocol(self) -> bool:
        """True for Kafka's own consumer protocol, whose subscriptions can be decoded."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Return True if a member reads the topic, or its subscription cannot be decoded."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics of all members; None if a subscription cannot be decoded."""
        if not self.uses_consumer_protocol:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            assert self.protocol_name is not None, self.group_id
            member_topics = subscribed_topics(member.metadata(self.protocol_name))
            if member_topics is None:
                return None
            topics |= member_topics
        return frozenset(topics)

    def _withdraw_protocols(self, member: Member) -> None:
        for protocol in member.protocols:
            self.supported_protocols[protocol.name] -= 1
            if not self.supported_protocols[protocol.name]:
                del self.supported_protocols[protocol.name]

    def check(self) -> None:
        """Assert the invariants of the module docstring."""
        state, members = self.state, self.members
        assert (self.leader_id is None) == (not members), self
        assert self.leader_id is None or self.leader_id in members, self
        assert self.static_member_ids == {
            member.group_instance_id: member.member_id
            for member in members.values()
            if member.group_instance_id is not None
        }, self
        assert self.awaiting_join.keys() <= members.keys(), self
        assert self.awaiting_sync.keys() <= members.keys(), self
        assert self.pending_sync_member_ids <= members.keys(), self
        assert not self.awaiting_join or state is GroupState.PREPARING_REBALANCE, self
        assert not self.awaiting_sync or state is GroupState.COMPLETING_REBALANCE, self
        assert not self.pending_member_ids & members.keys(), self
        if state in (GroupState.EMPTY, GroupState.DEAD):
            assert not members, self
            assert self.protocol_name is None, self
        if state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert members, self
            assert self.protocol_name is not None, self
            assert self.supported_protocols[self.protocol_name] == len(members), self
        offered = Counter(each.name for one in members.values() for each in one.protocols)
        assert offered == self.supported_protocols, self
