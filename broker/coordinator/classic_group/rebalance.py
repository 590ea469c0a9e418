"""A rebalance: prepare it, wait for all members, start the generation, answer every JoinGroup.

Every change of membership ends here, whether a request, a deadline or a lost connection caused it.
"""

import logging

from broker.coordinator.classic_group.classic_group import (
    ClassicDeadline,
    ClassicGroup,
    GroupEvent,
    GroupState,
    InitialDelay,
)
from broker.coordinator.classic_group.member import Member
from broker.coordinator.classic_group.records import group_record
from broker.coordinator.classic_group.sessions import end_session, restart_session, unpark
from broker.coordinator.group_state.step import Deadline, Step
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from common.kafka.protocol.messages.sync_group import SyncGroupResponse

logger = logging.getLogger(__name__)

FIRST_VERSION_WITH_NO_PROTOCOL = 7

MIN_JOIN_RETRY_MS = 1_000
"""The shortest time after which a join phase without a joined member is checked again. Absent
static members keep such a phase open, and their rebalance timeout may be zero."""


def rebalance(step: Step, group: ClassicGroup, reason: str) -> None:
    """Start a rebalance if the state allows it; in the join phase, check whether it is complete."""
    if group.can(GroupEvent.REBALANCE):
        prepare_rebalance(step, group, reason)
    else:
        maybe_complete_join(step, group)


def prepare_rebalance(step: Step, group: ClassicGroup, reason: str) -> None:
    """Enter PREPARING_REBALANCE; members that wait for an assignment must join again."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        reset_assignments(step, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync_member_ids.clear()
    step.cancel(Deadline(ClassicDeadline.SYNC, group.group_id))
    logger.debug(
        "group rebalances group=%s generation_id=%d state=%s reason=%s",
        group.group_id, group.generation_id, group.state.value, reason,
    )  # fmt: skip
    is_first = group.state is GroupState.EMPTY
    group.move(GroupEvent.REBALANCE, step.now.timestamp_ms)
    if is_first:
        delay_ms = step.shard.config.group_initial_rebalance_delay_ms
        group.initial_delay = InitialDelay(delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        step.schedule(Deadline(ClassicDeadline.JOIN, group.group_id), delay_ms)
    elif group.has_all_members_joined:
        complete_join(step, group)
    else:
        step.schedule(Deadline(ClassicDeadline.JOIN, group.group_id), group.rebalance_timeout_ms)


def maybe_complete_join(step: Step, group: ClassicGroup) -> bool:
    """End the join phase if all members have joined; a group's first one lasts for its delay."""
    if group.state is not GroupState.PREPARING_REBALANCE or group.initial_delay is not None:
        return False
    if not group.has_all_members_joined:
        return False
    complete_join(step, group)
    return True


def on_join_deadline(step: Step, group: ClassicGroup) -> None:
    """End the join phase, or extend a group's first one while members keep arriving."""
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    delay = group.initial_delay
    if delay is None or not delay.member_arrived or delay.remaining_ms == 0:
        complete_join(step, group)
        return
    next_delay_ms = min(step.shard.config.group_initial_rebalance_delay_ms, delay.remaining_ms)
    remaining_ms = max(delay.remaining_ms - delay.delay_ms, 0)
    group.initial_delay = InitialDelay(next_delay_ms, remaining_ms)
    step.schedule(Deadline(ClassicDeadline.JOIN, group.group_id), next_delay_ms)


def complete_join(step: Step, group: ClassicGroup) -> None:
    """Start the next generation with the members that joined; keep absent static members."""
    join_deadline = Deadline(ClassicDeadline.JOIN, group.group_id)
    step.cancel(join_deadline)
    for member in list(group.members.values()):
        if member.member_id not in group.awaiting_join and not member.is_static:
            remove_member(step, group, member)
    if not group.members:
        become_empty(step, group)
    elif not group.elect_joined_leader():
        # Only absent static members are left: their session timeouts decide.
        group.initial_delay = None
        step.schedule(join_deadline, max(group.rebalance_timeout_ms, MIN_JOIN_RETRY_MS))
    else:
        begin_generation(step, group)


def become_empty(step: Step, group: ClassicGroup) -> None:
    """Start an empty generation, and write it, because the last member has left."""
    group.begin_generation(step.now.timestamp_ms)
    group.is_persisted = True
    step.append(group_record(group, ()))


def begin_generation(step: Step, group: ClassicGroup) -> None:
    """Answer every JoinGroup, and wait for every SyncGroup.

    This writes no record: the record of the generation is written with its assignment.
    """
    group.begin_generation(step.now.timestamp_ms)
    for member in group.members.values():
        request = unpark(step, group.awaiting_join, member.member_id)
        if request is not None:
            step.reply(request.token, current_generation(group, member.member_id))
        restart_session(step, group, member)
        member.is_new = False
        member.knows_its_id = True
        group.pending_sync_member_ids.add(member.member_id)
    step.schedule(Deadline(ClassicDeadline.SYNC, group.group_id), group.rebalance_timeout_ms)


def current_generation(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """Build the JoinGroup answer; the leader's also has the metadata of all members."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member_id,
        members=member_list(group) if group.leader_id == member_id else [],
    )


def member_list(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """Return all members with their metadata for the selected protocol."""
    assert group.protocol_name is not None, group
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    ]


def reset_assignments(step: Step, group: ClassicGroup, code: ErrorCode) -> None:
    """Clear all assignments, and answer every parked SyncGroup with an error."""
    for member in group.members.values():
        member.assignment = b""
        answer_sync(step, group, member, SyncGroupResponse(error_code=code))


def answer_sync(
    step: Step, group: ClassicGroup, member: Member, response: SyncGroupResponse
) -> None:
    """Answer a member's parked SyncGroup, if there is one."""
    if member.member_id not in group.awaiting_sync:
        return
    # A session timeout during the wait was ignored, so start the session again, even if the
    # member's connection is closed.
    restart_session(step, group, member)
    request = unpark(step, group.awaiting_sync, member.member_id)
    if request is not None:
        step.reply(request.token, response)


def remove_member(step: Step, group: ClassicGroup, member: Member) -> None:
    """Remove a member, and answer its parked requests with UNKNOWN_MEMBER_ID."""
    remove_parked(step, group, member, ErrorCode.UNKNOWN_MEMBER_ID)
    end_session(step, group, member.member_id)
    group.remove(member.member_id)


def remove_parked(step: Step, group: ClassicGroup, member: Member, code: ErrorCode) -> None:
    """Answer a member's parked requests with an error."""
    # A client must not use its id after UNKNOWN_MEMBER_ID; after other errors it may.
    member_id = "" if code is ErrorCode.UNKNOWN_MEMBER_ID else member.member_id
    request = unpark(step, group.awaiting_join, member.member_id)
    if request is not None:
        step.reply(request.token, join_refusal(code, member_id, request.api_version))
    request = unpark(step, group.awaiting_sync, member.member_id)
    if request is not None:
        step.reply(request.token, SyncGroupResponse(error_code=code))


def join_refusal(code: ErrorCode, member_id: str, api_version: int) -> JoinGroupResponse:
    """Build the answer to a refused JoinGroup: its protocol name is null from v7, else empty."""
    protocol_name = None if api_version >= FIRST_VERSION_WITH_NO_PROTOCOL else ""
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=protocol_name)
