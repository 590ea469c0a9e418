"""What consumer, share and streams groups have in common: members, and the computation of targets.

A long computation is done in pieces, so that none of them blocks other requests.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Protocol, TypeVar

from broker.coordinator.group_state.step import Deadline, Step
from common.kafka.errors import ErrorCode, KafkaError

COST_AT_ONCE = 10_000
"""The members, topics and partitions touched in one `advance`: a few milliseconds."""

MemberT = TypeVar("MemberT")


def known_member(members: Mapping[str, MemberT], member_id: str, group_id: str) -> MemberT:
    """Return a member of a group; raise UNKNOWN_MEMBER_ID."""
    member = members.get(member_id)
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}."
        )
    return member


def advance(steps: Iterator[int]) -> bool:
    """Compute for a few milliseconds; return True when done. Each step yields its cost."""
    cost = 0
    for worked in steps:
        cost += worked
        if cost >= COST_AT_ONCE:
            return False
    return True


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


def completed(
    step: Step, group: AssignedGroup[ComputationT], deadline_kind: Enum
) -> ComputationT | None:
    """Continue the computation of a group, if any; return it when it is done.

    A long computation continues at the next deadline, which is of this kind.
    """
    new = group.new_targets
    if new is None:
        return None
    if not new.advance():
        step.go_on_later(Deadline(deadline_kind, group.group_id))
        return None
    group.new_targets = None
    return new
