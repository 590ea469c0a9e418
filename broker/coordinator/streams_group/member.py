"""One member of a streams group: what it says about itself, and the tasks that it has.

A task is a subtopology's work on one partition of its source topics. Its *active* task processes
the records; a *standby* task keeps a copy of its state up to date. Everything here is immutable,
and each class is one record of the log: a change makes a new object.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

Tasks = Mapping[str, frozenset[int]]
"""Partitions by subtopology id, without empty sets."""

HeldTasks = Mapping[str, Mapping[int, int]]
"""By subtopology id and partition, the epoch in which the member got the task."""

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
NO_TOPOLOGY_EPOCH = -1
STANDBY_EPOCH = 0
"""Records have no epochs of standby tasks."""


class MemberState(IntEnum):
    """The progress of a member towards its target; the values are those of the records,
    which are not those of consumer groups.

    STABLE            it has its target assignment
    UNREVOKED_TASKS   it must give tasks up and has not confirmed it
    UNRELEASED_TASKS  it waits for tasks that other members have not given up
    UNKNOWN           a state that a newer version has written
    """

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """The fields that a member sends about itself."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str = ""
    """The process that the member is a thread of; its members share one copy of each state."""
    user_endpoint: tuple[str, int] | None = None
    """Where other members ask for the state of this one (interactive queries)."""
    client_tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """The tasks that a member shall have."""

    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Held:
    """Tasks that a member has; the epochs of standby tasks are STANDBY_EPOCH."""

    active: HeldTasks = field(default_factory=dict)
    standby: HeldTasks = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return True if there is a task."""
        return bool(self.active or self.standby)


@dataclass(frozen=True, slots=True)
class CurrentAssignment:
    """A member's tasks. It has each task in either field until it has given it up.

    Invariant: `member_epoch` decreases only when the member joins again (0).
    """

    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Held = field(default_factory=Held)
    pending_revocation: Held = field(default_factory=Held)

    def assignment_epoch(self, subtopology_id: str, partition: int) -> int | None:
        """Return the epoch in which the member got an active task; None if it does not have it."""
        for held in (self.assigned, self.pending_revocation):
            epoch = held.active.get(subtopology_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


@dataclass(slots=True)
class StreamsMember:
    """One member, with both its records."""

    member_id: str
    metadata: MemberMetadata
    current: CurrentAssignment

    @property
    def member_epoch(self) -> int:
        """The epoch that it confirms with every heartbeat."""
        return self.current.member_epoch


def same_tasks(one: Held, other: Held) -> bool:
    """Return True if both have the same tasks, in whatever epochs."""
    return tasks_of(one.active) == tasks_of(other.active) and tasks_of(one.standby) == tasks_of(
        other.standby
    )


def tasks_of(held: HeldTasks) -> Tasks:
    """Return tasks without their epochs."""
    return {subtopology_id: frozenset(partitions) for subtopology_id, partitions in held.items()}
