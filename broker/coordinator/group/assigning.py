"""When the coordinator computes the targets of a group: consumer, share and streams groups."""

from typing import Protocol, TypeVar

from broker.coordinator.group.step import Deadline, DeadlineKind, Step


class Computation(Protocol):
    """A computation of targets that stops now and then."""

    def advance(self) -> bool:
        """Compute for a few milliseconds; return True when done."""


ComputationT = TypeVar("ComputationT", bound=Computation)


class AssignedGroup(Protocol[ComputationT]):
    """A group whose targets the coordinator computes."""

    group_id: str
    new_targets: ComputationT | None


def is_early(step: Step, assignment_timestamp_ms: int, interval_ms: int) -> bool:
    """Return True if the last assignment was less than an interval ago.

    A clock that was set back must not delay the assignment.
    """
    elapsed_ms = step.now.timestamp_ms - assignment_timestamp_ms
    return bool(assignment_timestamp_ms) and 0 <= elapsed_ms < interval_ms


def completed(step: Step, group: AssignedGroup[ComputationT]) -> ComputationT | None:
    """Continue the computation of a group, if any; return it when it is done.

    A long computation continues at the next deadline.
    """
    new = group.new_targets
    if new is None:
        return None
    if not new.advance():
        step.go_on_later(Deadline(DeadlineKind.ASSIGNING, group.group_id))
        return None
    group.new_targets = None
    return new
