"""How a member of a streams group gets to its target, heartbeat by heartbeat (KIP-1071).

As in a consumer group (`consumer_group/reconciliation.py`): a member first gives tasks up, in its
epoch, then gets the new epoch and the tasks that are free, and waits for the others.

An active task is free if no member has it as active, and no member of the same process has it as a
standby: a process has one copy of a state. A standby task is free if no member of the same process
has the task in either role.
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from broker.coordinator.consumer_group.reconciliation import has_any, restricted
from broker.coordinator.streams_group.member import (
    STANDBY_EPOCH,
    CurrentAssignment,
    Held,
    HeldTasks,
    MemberState,
    Target,
    Tasks,
)

ReportedTasks = Collection[tuple[str, int]]


class Reported:
    """The tasks that a member reports to have; None for no report."""

    __slots__ = ("active", "standby")

    def __init__(self, active: ReportedTasks | None, standby: ReportedTasks | None) -> None:
        self.active = active
        self.standby = standby

    def has_any_of(self, held: Held) -> bool:
        """Return True if the member may still have one of these; without a report it may."""
        if not held:
            return False
        return has_any(held.active, self.active) or has_any(held.standby, self.standby)

    @property
    def is_empty(self) -> bool:
        """True if the member reports that it has nothing."""
        return self.active is not None and not self.active and not self.standby


NOTHING_REPORTED = Reported(None, None)

IsFree = Callable[[str, int], bool]


def reconcile(
    current: CurrentAssignment,
    target: Target,
    *,
    target_epoch: int,
    reported: Reported,
    is_active_free: IsFree,
    is_standby_free: IsFree,
) -> CurrentAssignment:
    """Return the member's next assignment, which may be the current one.

    The functions say of a task that the member lacks whether it may have it. For a task that the
    member has just given up its own former possession must not count.
    """
    match current.state:
        case MemberState.STABLE:
            if current.member_epoch == target_epoch:
                return current
        case MemberState.UNREVOKED_TASKS:
            if reported.has_any_of(current.pending_revocation):
                return current
        case MemberState.UNKNOWN:
            # It has confirmed that it has nothing (see heartbeat.py), so it starts from nothing.
            current = replace(current, member_epoch=target_epoch)
        case MemberState.UNRELEASED_TASKS:
            pass
    assigned = current.assigned
    kept = Held(
        restricted(assigned.active, target.active, is_wanted=True),
        restricted(assigned.standby, target.standby, is_wanted=True),
    )
    given_up = Held(
        restricted(assigned.active, target.active, is_wanted=False),
        restricted(assigned.standby, target.standby, is_wanted=False),
    )
    if reported.has_any_of(given_up):
        return CurrentAssignment(
            current.member_epoch, current.member_epoch, MemberState.UNREVOKED_TASKS, kept, given_up
        )
    active, is_waiting = _with_free(kept.active, target.active, target_epoch, is_active_free)
    standby, waits_too = _with_free(kept.standby, target.standby, STANDBY_EPOCH, is_standby_free)
    state = MemberState.UNRELEASED_TASKS if is_waiting or waits_too else MemberState.STABLE
    return CurrentAssignment(target_epoch, current.member_epoch, state, Held(active, standby))


def _with_free(
    kept: HeldTasks, target: Tasks, epoch: int, is_free: IsFree
) -> tuple[HeldTasks, bool]:
    """Return the tasks with those of the target that are free, and whether some are not."""
    is_waiting = False
    tasks = {name: dict(partitions) for name, partitions in kept.items()}
    for name, partitions in sorted(target.items()):
        for partition in sorted(partitions - kept.get(name, {}).keys()):
            if is_free(name, partition):
                tasks.setdefault(name, {})[partition] = epoch
            else:
                is_waiting = True
    return tasks, is_waiting
