"""Heartbeat (key 12), versions 0-4, LeaveGroup (key 13), versions 0-5, and session timeouts.

Heartbeat v3 adds group_instance_id. LeaveGroup v3 takes several members, by member id or, from an
administrator, by group_instance_id alone; v5 has reasons.
"""

from broker.coordinator.classic_group.classic_group import ClassicGroup, GroupState
from broker.coordinator.classic_group.rebalance import (
    complete_join,
    maybe_complete_join,
    rebalance,
    remove_member,
)
from broker.coordinator.classic_group.sessions import (
    end_session,
    existing_group,
    restart_session,
    unpark,
)
from broker.coordinator.group_state.step import Step
from broker.coordinator.output import ShardContext, Token
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from common.kafka.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

ANSWER_TO_HEARTBEAT: dict[GroupState, ErrorCode] = {
    GroupState.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    GroupState.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    # Clients may send heartbeats between JoinGroup and SyncGroup.
    GroupState.COMPLETING_REBALANCE: ErrorCode.NONE,
    GroupState.STABLE: ErrorCode.NONE,
    GroupState.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

FIRST_VERSION_WITH_MEMBERS = 3


def refuse_heartbeat(
    context: ShardContext, request: HeartbeatRequest, code: ErrorCode
) -> HeartbeatResponse:
    """Build the answer to a refused Heartbeat."""
    return HeartbeatResponse(error_code=code)


def heartbeat(step: Step, token: Token, context: ShardContext, request: HeartbeatRequest) -> None:
    """Restart a member's session; the answer says whether it must join again."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    group = existing_group(step, request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    restart_session(step, group, member)
    step.reply(token, HeartbeatResponse(error_code=ANSWER_TO_HEARTBEAT[group.state]))


def refuse_leave(
    context: ShardContext, request: LeaveGroupRequest, code: ErrorCode
) -> LeaveGroupResponse:
    """Build the answer to a refused LeaveGroup; for an unknown group, the error is per member."""
    if code is ErrorCode.UNKNOWN_MEMBER_ID and context.api_version >= FIRST_VERSION_WITH_MEMBERS:
        return LeaveGroupResponse(
            members=[answer_for(identity, code) for identity in request.members]
        )
    return LeaveGroupResponse(error_code=code)


def leave_group(
    step: Step, token: Token, context: ShardContext, request: LeaveGroupRequest
) -> None:
    """Remove members at once, without waiting for their session timeouts."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    group = existing_group(step, request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
    has_members = context.api_version >= FIRST_VERSION_WITH_MEMBERS
    identities = request.members if has_members else [MemberIdentity(member_id=request.member_id)]
    member_count = len(group.members)
    answers = [
        answer_for(identity, remove_identity(step, group, identity)) for identity in identities
    ]
    if len(group.members) < member_count:
        rebalance(step, group, f"{member_count - len(group.members)} members leave")
    else:
        maybe_complete_join(step, group)
        maybe_drop(step, group)
    if has_members:
        step.reply(token, LeaveGroupResponse(members=answers))
    else:
        step.reply(token, LeaveGroupResponse(error_code=answers[0].error_code))


def answer_for(identity: MemberIdentity, code: ErrorCode) -> MemberResponse:
    """Build the answer for one of the members of a LeaveGroup."""
    return MemberResponse(
        member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code
    )


def remove_identity(step: Step, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
    """Remove the member or pending member that an identity names; return the error code."""
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id and instance_id is not None:
        member_id = group.static_member_ids.get(instance_id, "")
    if member_id in group.pending_member_ids:
        end_session(step, group, member_id)
        group.remove(member_id)
        return ErrorCode.NONE
    try:
        member = group.validate_member(member_id, instance_id)
    except KafkaError as refusal:
        return refusal.code
    remove_member(step, group, member)
    return ErrorCode.NONE


def on_session_deadline(step: Step, group: ClassicGroup, member_id: str) -> None:
    """Remove a member whose session timed out, unless it is not new and has a parked request."""
    if member_id in group.pending_member_ids:
        group.remove(member_id)
        complete_if_all_joined(step, group)
        maybe_drop(step, group)
        return
    member = group.members.get(member_id)
    if member is None:
        return
    is_waiting = member_id in group.awaiting_join or member_id in group.awaiting_sync
    if is_waiting and not member.is_new:
        return
    remove_member(step, group, member)
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_if_all_joined(step, group)
    else:
        rebalance(step, group, f"the session of {member_id} timed out")


def complete_if_all_joined(step: Step, group: ClassicGroup) -> None:
    """End the join phase, even a group's first one, if all remaining members have joined."""
    if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
        complete_join(step, group)


def on_connection_closed(step: Step, group: ClassicGroup, member_id: str) -> None:
    """Handle the closed connection of a parked request.

    The member stays in the group, because its client usually retries on another connection. A
    dynamic member that does not know its id cannot retry, so it is removed at once.
    """
    for waiting in (group.awaiting_join, group.awaiting_sync):
        if unpark(step, waiting, member_id) is not None:
            waiting[member_id] = None
    member = group.members[member_id]
    if not member.knows_its_id and not member.is_static:
        group.awaiting_join.pop(member_id, None)
        remove_member(step, group, member)
        rebalance(step, group, f"{member_id} disconnected before it received its id")


def maybe_drop(step: Step, group: ClassicGroup) -> bool:
    """Drop a group with no member, no generation and no offsets; return True if dropped."""
    if (
        group.state is not GroupState.EMPTY
        or group.pending_member_ids
        or group.is_persisted
        or group.group_id in step.shard.offsets
    ):
        return False
    del step.shard.of(ClassicGroup)[group.group_id]
    return True
