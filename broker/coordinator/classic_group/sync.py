"""SyncGroup (key 14), versions 0-5.

v3 adds group_instance_id, v5 the protocol type and name, which must be the group's (KIP-559). The
requests of followers park until the leader's request has the assignment of all members; then the
group record is written, and all are answered. A member that does not send SyncGroup within the
rebalance timeout is removed, because the others would wait for it in the next rebalance.
"""

from broker.coordinator.classic_group.classic_group import (
    ClassicDeadline,
    ClassicGroup,
    GroupEvent,
    GroupState,
)
from broker.coordinator.classic_group.member import Member
from broker.coordinator.classic_group.rebalance import (
    answer_sync,
    prepare_rebalance,
    rebalance,
    remove_member,
    reset_assignments,
)
from broker.coordinator.classic_group.records import group_record
from broker.coordinator.classic_group.sessions import existing_group, park
from broker.coordinator.group_state.step import Deadline, Step
from broker.coordinator.output import ShardContext, Token, Waiting
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST_VERSION_WITH_PROTOCOL = 5


def refuse_sync(
    context: ShardContext, request: SyncGroupRequest, code: ErrorCode
) -> SyncGroupResponse:
    """Build the answer to a refused SyncGroup."""
    return SyncGroupResponse(error_code=code)


def sync_group(step: Step, token: Token, context: ShardContext, request: SyncGroupRequest) -> None:
    """Answer with the member's assignment, at once or when the leader has sent it."""
    group, member = validate_request(step, context, request)
    # The member has synced in time, whatever the answer to this request is.
    group.pending_sync_member_ids.discard(member.member_id)
    if not group.pending_sync_member_ids:
        step.cancel(Deadline(ClassicDeadline.SYNC, group.group_id))
    if group.state is GroupState.STABLE:
        step.reply(token, assignment_of(group, member))
        return
    waiting = Waiting(token, context.api_version)
    superseded = park(step, group.awaiting_sync, group, member, waiting)
    if superseded is not None:
        code = ErrorCode.REBALANCE_IN_PROGRESS
        step.reply(superseded.token, SyncGroupResponse(error_code=code))
    if group.leader_id == member.member_id:
        assign(step, group, request)


def validate_request(
    step: Step, context: ShardContext, request: SyncGroupRequest
) -> tuple[ClassicGroup, Member]:
    """Return group and member; raise KafkaError."""
    if context.api_version >= FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    group = existing_group(step, request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if request.protocol_type not in (None, group.protocol_type):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # In PREPARING_REBALANCE, `protocol_name` is still that of the previous generation.
    if request.protocol_name not in (None, group.protocol_name) and group.protocol_name is not None:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    return group, member


def assign(step: Step, group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Apply the leader's assignment: the group becomes STABLE and is written."""
    assignments = {each.member_id: each.assignment for each in request.assignments}
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    if not _fits(step, group):
        reset_assignments(step, group, ErrorCode.UNKNOWN_SERVER_ERROR)
        rebalance(step, group, "the group does not fit into one record")
        return
    for member in group.members.values():
        # A large assignment is a view of the request's frame (`decoding.MAX_COPIED_BLOB_BYTES`).
        member.assignment = bytes(member.assignment)
    group.move(GroupEvent.ASSIGNED, step.now.timestamp_ms)
    group.is_persisted = True
    step.append(group_record(group, group.members.values()))
    for member in group.members.values():
        answer_sync(step, group, member, assignment_of(group, member))


def _fits(step: Step, group: ClassicGroup) -> bool:
    """Return True if the group fits into a batch; skip the encoding of a far too large one."""
    assigned_bytes = sum(len(member.assignment) for member in group.members.values())
    if assigned_bytes > step.shard.config.max_batch_bytes:
        return False
    return step.fits(group_record(group, group.members.values()))


def assignment_of(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    """Build the answer with a member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def on_sync_deadline(step: Step, group: ClassicGroup) -> None:
    """Remove the members that did not send SyncGroup, and start a rebalance."""
    missing = [
        each for each in group.members.values() if each.member_id in group.pending_sync_member_ids
    ]
    if not missing or not group.can(GroupEvent.REBALANCE):
        return
    for member in missing:
        remove_member(step, group, member)
    prepare_rebalance(step, group, f"{len(missing)} members did not sync")
