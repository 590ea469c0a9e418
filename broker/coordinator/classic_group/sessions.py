"""The sessions of a classic group's members, and the requests of theirs that wait for an answer."""

from broker.coordinator.classic_group.classic_group import ClassicDeadline, ClassicGroup
from broker.coordinator.classic_group.member import Member
from broker.coordinator.group_state.step import Deadline, Parked, Step
from broker.coordinator.output import Waiting
from common.kafka.errors import ErrorCode, KafkaError


def existing_group(step: Step, group_id: str, error: ErrorCode) -> ClassicGroup:
    """Return the classic group; raise KafkaError with `error` if there is none."""
    group = step.shard.of(ClassicGroup).get(group_id)
    if group is None:
        raise KafkaError(error, f"Group {group_id} not found.")
    return group


def park(
    step: Step,
    waiting: dict[str, Waiting | None],
    group: ClassicGroup,
    member: Member,
    request: Waiting,
) -> Waiting | None:
    """Park a request; return the one that it supersedes, which the caller must answer."""
    superseded = unpark(step, waiting, member.member_id)
    waiting[member.member_id] = request
    step.shard.parked[request.token] = Parked(group.group_id, member.member_id)
    return superseded


def unpark(step: Step, waiting: dict[str, Waiting | None], member_id: str) -> Waiting | None:
    """End a wait; return the request to answer, None if there is none or it is closed."""
    request = waiting.pop(member_id, None)
    if request is not None:
        del step.shard.parked[request.token]
    return request


def restart_session(step: Step, group: ClassicGroup, member: Member) -> None:
    """Start a member's session timeout anew."""
    deadline = Deadline(ClassicDeadline.SESSION, group.group_id, member.member_id)
    step.schedule(deadline, member.session_timeout_ms)


def end_session(step: Step, group: ClassicGroup, member_id: str) -> None:
    """Cancel a member's session timeout."""
    step.cancel(Deadline(ClassicDeadline.SESSION, group.group_id, member_id))
