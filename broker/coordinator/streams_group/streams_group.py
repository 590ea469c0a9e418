"""A streams group (KIP-1071): its topology, its epochs, its members, and who has each task.

    group_epoch                counts changes of members, topics, topology and settings
    target_epoch               the group epoch that `targets` was computed for
    member_epoch, of each      the target epoch that the member has reached
    validated_topology_epoch   the epoch of the topology that the cluster's topics allow; -1: none

    EMPTY          no members
    NOT_READY      topics are missing or have wrong partition counts
    ASSIGNING      target_epoch < group_epoch
    RECONCILING    a member has not reached its target
    STABLE         every member has reached its target

The state is not stored: it follows from the epochs.

Invariants (`check`, which the simulator calls after every event):

- member_epoch <= target_epoch <= group_epoch; group_epoch and target_epoch only grow.
- A task is active in at most one member, and no process has a task twice.
- `active_owners` and `standby_owners` equal the sum of the members' tasks.
- No two targets share an active task.

Only the methods under "replay" change persisted state, each for one kind of record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from broker.coordinator.group_state.modern_group import known_member
from broker.coordinator.streams_group.configured_topology import ConfiguredTopology
from broker.coordinator.streams_group.member import (
    NO_TOPOLOGY_EPOCH,
    CurrentAssignment,
    HeldTasks,
    MemberMetadata,
    MemberState,
    StreamsMember,
    Target,
)
from broker.coordinator.streams_group.new_targets import NewTargets
from broker.coordinator.streams_group.topology import StreamsTopology

INITIAL_EPOCH = 1
"""A member that waits for the first assignment gets this epoch: 0 would mean that it joins."""


class StreamsGroupState(Enum):
    """The state of a group; the values are those that clients see."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class StreamsDeadline(Enum):
    """The purpose of a deadline of a streams group."""

    SESSION = "a member's session"
    REVOCATION = "the time to revoke tasks"
    INITIAL_DELAY = "the first assignment"
    ASSIGNING = "the rest of the targets"


@dataclass(slots=True)
class StreamsGroup:
    """The state of one group. Its methods send no answers."""

    KIND: ClassVar = "a streams group"
    group_id: str
    group_epoch: int = INITIAL_EPOCH
    metadata_hash: int = 0  # of the required topics, at the group epoch
    validated_topology_epoch: int = NO_TOPOLOGY_EPOCH
    assignment_configs: Mapping[str, str] = field(default_factory=dict)  # at the group epoch
    target_epoch: int = INITIAL_EPOCH
    assignment_timestamp_ms: int = 0
    topology: StreamsTopology | None = None
    members: dict[str, StreamsMember] = field(default_factory=dict)  # by id, in order of arrival
    targets: dict[str, Target] = field(default_factory=dict)  # by member id
    active_owners: dict[str, dict[int, str]] = field(default_factory=dict)
    """The member of each active task, by subtopology id and partition."""
    standby_owners: dict[str, dict[int, set[str]]] = field(default_factory=dict)

    # Soft state: it is not in the log and starts empty after a reload.
    seen_topics_version: int = -1  # the version of the cluster's topics at the last refresh
    configured: ConfiguredTopology | None = None
    new_targets: NewTargets | None = None
    is_first_delayed: bool = False
    """True while the first assignment waits for more members."""
    shutdown_member_id: str = ""
    """The member that has asked all members to shut down; empty for none."""
    endpoint_epoch: int = 0

    # Queries.

    @property
    def state(self) -> StreamsGroupState:
        """The state that follows from the epochs."""
        if not self.members:
            return StreamsGroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.group_epoch > self.target_epoch:
            return StreamsGroupState.ASSIGNING
        if all(map(self.has_reached_target, self.members.values())):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    def has_reached_target(self, member: StreamsMember) -> bool:
        """Return True if a member has exactly its target assignment."""
        current = member.current
        return current.state is MemberState.STABLE and current.member_epoch == self.target_epoch

    def member(self, member_id: str) -> StreamsMember:
        """Return a member; raise UNKNOWN_MEMBER_ID."""
        return known_member(self.members, member_id, self.group_id)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return True if the members read the topic."""
        return bool(self.members) and self.topology is not None and topic in self.topology.readers

    def is_active_free(self, member: StreamsMember, subtopology_id: str, partition: int) -> bool:
        """Return True if a member may get a task as active; what it has given up is free."""
        owner = self.active_owners.get(subtopology_id, {}).get(partition)
        if owner is not None and owner != member.member_id:
            return False
        return not self._has_standby(member, subtopology_id, partition)

    def is_standby_free(self, member: StreamsMember, subtopology_id: str, partition: int) -> bool:
        """Return True if a member may get a task as a standby; what it has given up is free."""
        owner = self.active_owners.get(subtopology_id, {}).get(partition)
        if owner is not None and owner != member.member_id and self._is_near(member, owner):
            return False
        return not self._has_standby(member, subtopology_id, partition)

    def _has_standby(self, member: StreamsMember, subtopology_id: str, partition: int) -> bool:
        """Return True if another member of the same process has the task as a standby."""
        owners = self.standby_owners.get(subtopology_id, {}).get(partition, ())
        return any(owner != member.member_id and self._is_near(member, owner) for owner in owners)

    def _is_near(self, member: StreamsMember, other_id: str) -> bool:
        other = self.members.get(other_id)
        return other is not None and other.metadata.process_id == member.metadata.process_id

    # Replay. After compaction of the log, a group's records may be in any order.

    def replay_metadata(self, member_id: str, metadata: MemberMetadata | None) -> None:
        """Add a member, change what it says about itself, or remove it."""
        member = self.members.get(member_id)
        if metadata is not None:
            if member is None:
                member = StreamsMember(member_id, metadata, CurrentAssignment())
                self.members[member_id] = member
            member.metadata = metadata
        elif member is not None:
            self._disown(member)
            del self.members[member_id]
            if not self.members:
                self.shutdown_member_id = ""

    def replay_current(self, member_id: str, current: CurrentAssignment | None) -> None:
        """Change a member's epoch and tasks, or clear them."""
        member = self.members.get(member_id)
        if member is None:
            if current is None:
                return
            member = StreamsMember(member_id, MemberMetadata(), current)
            self.members[member_id] = member
        else:
            self._disown(member)
        member.current = current = current or CurrentAssignment()
        for held in (current.assigned, current.pending_revocation):
            for name, partitions in held.active.items():
                self.active_owners.setdefault(name, {}).update(dict.fromkeys(partitions, member_id))
            for name, partitions in held.standby.items():
                owners = self.standby_owners.setdefault(name, {})
                for partition in partitions:
                    owners.setdefault(partition, set()).add(member_id)

    def replay_target(self, member_id: str, target: Target | None) -> None:
        """Change or remove a member's target."""
        if target is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = target

    def replay_topology(self, topology: StreamsTopology | None) -> None:
        """Set or remove the topology."""
        self.topology = topology
        self.configured = None

    def _disown(self, member: StreamsMember) -> None:
        current = member.current
        for held in (current.assigned, current.pending_revocation):
            for name, partitions in held.active.items():
                owners = self.active_owners.get(name, {})
                for partition in partitions:
                    # The record of the new owner may be earlier in the log.
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    self.active_owners.pop(name, None)
            for name, partitions in held.standby.items():
                standbys = self.standby_owners.get(name, {})
                for partition in partitions:
                    standbys.get(partition, set()).discard(member.member_id)
                    if not standbys.get(partition):
                        standbys.pop(partition, None)
                if not standbys:
                    self.standby_owners.pop(name, None)

    def check(self) -> None:
        """Assert the invariants of the module docstring."""
        assert self.target_epoch <= self.group_epoch, self
        active: dict[tuple[str, int], str] = {}
        standby: dict[tuple[str, int], set[str]] = {}
        in_process: dict[tuple[str, str, int], str] = {}
        for member in self.members.values():
            current, process_id = member.current, member.metadata.process_id
            assert member.member_epoch <= self.target_epoch, (member, self.target_epoch)
            for held in (current.assigned, current.pending_revocation):
                for task in tasks_in(held.active):
                    assert task not in active, (task, active[task], member)
                    active[task] = member.member_id
                for task in tasks_in(held.standby):
                    standby.setdefault(task, set()).add(member.member_id)
                for task in (*tasks_in(held.active), *tasks_in(held.standby)):
                    other = in_process.setdefault((process_id, *task), member.member_id)
                    assert other == member.member_id, (task, other, member)
        assert active == {
            (name, partition): owner
            for name, owners in self.active_owners.items()
            for partition, owner in owners.items()
        }, self
        assert standby == {
            (name, partition): each
            for name, owners in self.standby_owners.items()
            for partition, each in owners.items()
        }, self
        wanted = [
            (name, partition)
            for target in self.targets.values()
            for name, partitions in target.active.items()
            for partition in partitions
        ]
        assert len(wanted) == len(set(wanted)), self


def tasks_in(held: HeldTasks) -> list[tuple[str, int]]:
    """Return tasks as pairs of subtopology id and partition."""
    return [(name, partition) for name, partitions in held.items() for partition in partitions]
