"""Members that leave a streams group: by request, by a timeout, or because they gave no task up.

The records of such a member are removed, and the group gets a new epoch; the other members learn of
it with their next heartbeat.
"""

import logging

from broker.coordinator.group_state.step import Deadline, Step
from broker.coordinator.streams_group.member import MemberState, StreamsMember
from broker.coordinator.streams_group.records import (
    Current,
    GroupEpoch,
    GroupTopology,
    Member,
    TargetAssignment,
    TargetEpoch,
)
from broker.coordinator.streams_group.replay import write
from broker.coordinator.streams_group.streams_group import StreamsDeadline, StreamsGroup
from common.kafka.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

logger = logging.getLogger(__name__)


def leave(step: Step, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    """Remove a member that leaves; it may ask the others to shut down too."""
    group = step.group(StreamsGroup, request.group_id)
    member = group.member(request.member_id)
    if request.shutdown_application:
        request_shutdown(group, member.member_id)
    remove(step, group, member, "left")
    return StreamsGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch, status=[]
    )


def request_shutdown(group: StreamsGroup, member_id: str) -> None:
    """Have every member told to shut down, until the group has no members."""
    group.shutdown_member_id = group.shutdown_member_id or member_id


def erase(step: Step, group: StreamsGroup, member: StreamsMember) -> None:
    """Write the tombstones of a member, of its tasks and of its target."""
    for kind in (StreamsDeadline.SESSION, StreamsDeadline.REVOCATION):
        step.cancel(Deadline(kind, group.group_id, member.member_id))
    write(step, Current(group.group_id, member.member_id, None))
    write(step, TargetAssignment(group.group_id, member.member_id, None))
    write(step, Member(group.group_id, member.member_id, None))


def remove(step: Step, group: StreamsGroup, member: StreamsMember, reason: str) -> None:
    """Remove a member; the group gets a new epoch."""
    logger.debug(
        "member removed group=%s member=%s reason=%s", group.group_id, member.member_id, reason
    )
    erase(step, group, member)
    write(
        step,
        GroupEpoch(
            group.group_id,
            group.group_epoch + 1,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
        ),
    )


def erase_group(step: Step, group: StreamsGroup) -> None:
    """Remove a group with all its records."""
    for member in list(group.members.values()):
        erase(step, group, member)
    for kind in (StreamsDeadline.INITIAL_DELAY, StreamsDeadline.ASSIGNING):
        step.cancel(Deadline(kind, group.group_id))
    write(step, TargetEpoch(group.group_id, None))
    write(step, GroupTopology(group.group_id, None))
    write(step, GroupEpoch(group.group_id, None))


def restart_session(step: Step, group: StreamsGroup, member: StreamsMember) -> None:
    """Start a member's session timeout anew."""
    deadline = Deadline(StreamsDeadline.SESSION, group.group_id, member.member_id)
    step.schedule(deadline, step.streams_config(group.group_id).session_timeout_ms)


def watch_revocation(step: Step, group: StreamsGroup, member: StreamsMember) -> None:
    """Start the rebalance timeout of a member that must give tasks up, or cancel it."""
    deadline = Deadline(StreamsDeadline.REVOCATION, group.group_id, member.member_id)
    if member.current.state is MemberState.UNREVOKED_TASKS:
        step.schedule(deadline, max(member.metadata.rebalance_timeout_ms, 0))
    else:
        step.cancel(deadline)


def on_session_deadline(step: Step, group: StreamsGroup, member_id: str) -> None:
    """Remove a member whose session has timed out."""
    member = group.members.get(member_id)
    if member is not None:
        remove(step, group, member, "its session timed out")


def on_revocation_deadline(step: Step, group: StreamsGroup, member_id: str) -> None:
    """Remove a member that did not give its tasks up in time; others wait for them."""
    member = group.members.get(member_id)
    if member is not None and member.current.state is MemberState.UNREVOKED_TASKS:
        remove(step, group, member, "it did not give its tasks up in time")


def restart_timers(step: Step, group: StreamsGroup) -> None:
    """Start all timeouts of the group's members, as after loading."""
    for member in group.members.values():
        restart_session(step, group, member)
        watch_revocation(step, group, member)
