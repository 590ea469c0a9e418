"""JoinGroup (key 11), versions 0-9.

v1 adds rebalance_timeout_ms; in v0 the session timeout is used for it. v4: a dynamic member without
an id gets one with MEMBER_ID_REQUIRED, and joins again with it (KIP-394). v5 adds group_instance_id
(KIP-345): a static member without an id replaces its predecessor, which is fenced; in a STABLE
group this needs no rebalance while the selected protocol stays the same. v7 returns the protocol
type. v8 has a reason. v9 tells a returning static leader to skip the assignment (KIP-814); in older
versions the answer names the predecessor as the leader, so that the member does not assign.
"""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from broker.coordinator.classic_group.classic_group import ClassicDeadline, ClassicGroup, GroupState
from broker.coordinator.classic_group.member import Member, MemberProtocol
from broker.coordinator.classic_group.rebalance import (
    current_generation,
    join_refusal,
    maybe_complete_join,
    rebalance,
    remove_member,
    remove_parked,
)
from broker.coordinator.classic_group.records import group_record
from broker.coordinator.classic_group.sessions import end_session, park, restart_session
from broker.coordinator.group_state.config import MAX_PENDING_MEMBERS, GroupConfig, fits_record
from broker.coordinator.group_state.step import Deadline, Step
from broker.coordinator.output import ShardContext, Token, Waiting
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
)

FIRST_VERSION_WITH_REBALANCE_TIMEOUT = 1
FIRST_VERSION_REQUIRING_MEMBER_ID = 4
FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9


class JoinCall(NamedTuple):
    """One JoinGroup request, with its token and its context."""

    token: Token
    context: ShardContext
    request: JoinGroupRequest


def join_other_group(
    step: Step, token: Token, context: ShardContext, request: JoinGroupRequest
) -> None:
    """Refuse a member of a share group or a streams group: these have other protocols."""
    raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def refuse_join(
    context: ShardContext, request: JoinGroupRequest, code: ErrorCode
) -> JoinGroupResponse:
    """Build the answer to a refused JoinGroup."""
    member_id = "" if code is ErrorCode.GROUP_MAX_SIZE_REACHED else request.member_id
    return join_refusal(code, member_id, context.api_version)


def join_group(
    step: Step,
    token: Token,
    context: ShardContext,
    request: JoinGroupRequest,
    *,
    drop_empty: Callable[[Step, str], None],
) -> None:
    """Add a member, or let it join again; the answer is parked until the join phase ends.

    A new member calls `drop_empty`, which removes a group without members that has a newer protocol
    and the same name.
    """
    validate_request(step.shard.config, context, request)
    call = JoinCall(token, context, request)
    group = step.shard.of(ClassicGroup).get(request.group_id)
    if group is None:
        if request.member_id:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        # A group without a generation and without offsets needs no record.
        timestamp_ms = step.now.timestamp_ms
        group = ClassicGroup(request.group_id, current_state_timestamp_ms=timestamp_ms)
    if not has_room(group, request.member_id, step.shard.config.group_max_size):
        refuse_for_size(step, group, call)
        return
    names = [protocol.name for protocol in request.protocols]
    if not group.supports_protocols(request.protocol_type, names):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if request.member_id:
        join_known_member(step, group, call)
    else:
        drop_empty(step, group.group_id)
        join_unknown_member(step, group, call)


def validate_request(config: GroupConfig, context: ShardContext, request: JoinGroupRequest) -> None:
    """Raise KafkaError for a request that is wrong in every state of the group."""
    if not request.group_id or not fits_record(request.group_id):
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    names = [context.client_id, request.group_instance_id, request.protocol_type]
    names += [protocol.name for protocol in request.protocols]
    if not all(map(fits_record, names)):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    # The metadata would not fit into a record; Kafka detects it only after the assignment.
    if any(len(protocol.metadata) > config.max_batch_bytes for protocol in request.protocols):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    shortest_ms = config.group_min_session_timeout_ms
    if not shortest_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)


def has_room(group: ClassicGroup, member_id: str, group_max_size: int) -> bool:
    """Return True if group.max.size lets this member join.

    In the join phase the waiting members count, and not all members: after the limit was lowered,
    the last members to join again are refused.
    """
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        return member_id in group.awaiting_join or len(group.awaiting_join) < group_max_size
    return member_id in group.members or len(group.members) < group_max_size


def refuse_for_size(step: Step, group: ClassicGroup, call: JoinCall) -> None:
    """Answer GROUP_MAX_SIZE_REACHED, and remove the member if it was in the group."""
    member_id = call.request.member_id
    member = group.members.get(member_id)
    if member is not None:
        remove_member(step, group, member)
    elif member_id in group.pending_member_ids:
        end_session(step, group, member_id)
        group.remove(member_id)
    maybe_complete_join(step, group)
    code = ErrorCode.GROUP_MAX_SIZE_REACHED
    step.reply(call.token, refuse_join(call.context, call.request, code))


def join_unknown_member(step: Step, group: ClassicGroup, call: JoinCall) -> None:
    """Handle a member without an id: a static one replaces its predecessor, others get an id."""
    instance_id = call.request.group_instance_id
    prefix = call.context.client_id if instance_id is None else instance_id
    member = new_member(f"{prefix}-{random_uuid_text(step)}", call)
    step.shard.of(ClassicGroup)[group.group_id] = group
    if instance_id is not None and instance_id in group.static_member_ids:
        replace_static_member(step, group, member, call)
    elif instance_id is None and call.context.api_version >= FIRST_VERSION_REQUIRING_MEMBER_ID:
        require_member_id(step, group, member, call)
    else:
        add_member(step, group, member, call)


def require_member_id(step: Step, group: ClassicGroup, member: Member, call: JoinCall) -> None:
    """Answer with a new id; the pending member must join with it within its session timeout."""
    if len(group.pending_member_ids) >= MAX_PENDING_MEMBERS:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    group.pending_member_ids.add(member.member_id)
    if group.initial_delay is not None:
        # It is about to join: the first generation waits for it once more.
        group.initial_delay.member_arrived = True
    restart_session(step, group, member)
    code = ErrorCode.MEMBER_ID_REQUIRED
    step.reply(call.token, join_refusal(code, member.member_id, call.context.api_version))


def join_known_member(step: Step, group: ClassicGroup, call: JoinCall) -> None:
    """Handle a member with an id: a pending member, or one that joins again."""
    member_id, instance_id = call.request.member_id, call.request.group_instance_id
    if member_id in group.pending_member_ids and instance_id is None:
        add_member(step, group, new_member(member_id, call), call)
        return
    member = group.validate_member(member_id, instance_id)
    has_changed = member.protocols != offered_protocols(call.request)
    # The leader joins a STABLE group again when the partitions to assign have changed.
    is_request = group.state is GroupState.STABLE and group.leader_id == member_id
    if has_changed or is_request or group.state is GroupState.PREPARING_REBALANCE:
        rejoin(step, group, member, call)
    else:
        # The answer to this generation's JoinGroup may have been lost, so it is repeated.
        step.reply(call.token, current_generation(group, member_id))


def add_member(step: Step, group: ClassicGroup, member: Member, call: JoinCall) -> None:
    """Add a new member and start a rebalance."""
    member.is_new = True
    member.knows_its_id = bool(call.request.member_id)
    if group.initial_delay is not None:
        group.initial_delay.member_arrived = True
    group.add(member, call.request.protocol_type)
    wait_for_generation(step, group, member, call)
    # A waiting member sends no heartbeat, and its client may have retried with another id. So the
    # wait of a new member is bounded.
    session = Deadline(ClassicDeadline.SESSION, group.group_id, member.member_id)
    step.schedule(session, step.shard.config.new_member_join_timeout_ms)
    rebalance(step, group, f"{member.member_id} joins ({call.request.reason})")


def rejoin(step: Step, group: ClassicGroup, member: Member, call: JoinCall) -> None:
    """Update a member from its request, and start a rebalance."""
    group.update(member, offered_protocols(call.request))
    member.session_timeout_ms = call.request.session_timeout_ms
    member.rebalance_timeout_ms = rebalance_timeout_ms(call)
    wait_for_generation(step, group, member, call)
    rebalance(step, group, f"{member.member_id} rejoins ({call.request.reason})")


def replace_static_member(step: Step, group: ClassicGroup, member: Member, call: JoinCall) -> None:
    """Replace a static member's predecessor, and fence the predecessor."""
    assert member.group_instance_id is not None, member
    predecessor = group.members[group.static_member_ids[member.group_instance_id]]
    shown_leader_id = group.leader_id
    member.assignment = predecessor.assignment
    if group.state is GroupState.STABLE and keeps_protocol(step, group, predecessor, member):
        # A STABLE group has no parked requests, so the new member id alone fences the predecessor.
        take_over(step, group, predecessor, member)
        group.subscribed_topics = group.compute_subscribed_topics()
        step.append(group_record(group, group.members.values()))
        step.reply(call.token, unchanged_generation(group, member, call, shown_leader_id))
        return
    remove_parked(step, group, predecessor, ErrorCode.FENCED_INSTANCE_ID)
    take_over(step, group, predecessor, member)
    wait_for_generation(step, group, member, call)
    # COMPLETING_REBALANCE ends too: the leader may already be assigning to the predecessor's id.
    rebalance(step, group, f"{member.member_id} replaces its predecessor ({call.request.reason})")


def keeps_protocol(step: Step, group: ClassicGroup, predecessor: Member, member: Member) -> bool:
    """Return True if the group would select the same protocol with the new member.

    Raise UNKNOWN_SERVER_ERROR, with nothing changed, if the member does not fit into the group's
    record.
    """
    group.replace(predecessor.member_id, member)
    is_same = group.select_protocol() == group.protocol_name
    is_too_large = is_same and not step.fits(group_record(group, group.members.values()))
    group.replace(member.member_id, predecessor)
    if is_too_large:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return is_same


def take_over(step: Step, group: ClassicGroup, predecessor: Member, member: Member) -> None:
    """Replace the predecessor, and end its session."""
    end_session(step, group, predecessor.member_id)
    group.replace(predecessor.member_id, member)
    restart_session(step, group, member)


def unchanged_generation(
    group: ClassicGroup, member: Member, call: JoinCall, shown_leader_id: str | None
) -> JoinGroupResponse:
    """Build the answer that lets a static member continue in the generation without assigning."""
    response = current_generation(group, member.member_id)
    if call.context.api_version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
        response.skip_assignment = group.leader_id == member.member_id
    else:
        response.leader = shown_leader_id or ""
        response.members = []
    return response


def wait_for_generation(step: Step, group: ClassicGroup, member: Member, call: JoinCall) -> None:
    """Park a JoinGroup; answer an older one of the same member with REBALANCE_IN_PROGRESS."""
    request = Waiting(call.token, call.context.api_version)
    superseded = park(step, group.awaiting_join, group, member, request)
    if superseded is not None:
        code = ErrorCode.REBALANCE_IN_PROGRESS
        refusal = join_refusal(code, member.member_id, superseded.api_version)
        step.reply(superseded.token, refusal)


def new_member(member_id: str, call: JoinCall) -> Member:
    """Build a member from a request."""
    return Member(
        member_id,
        call.request.group_instance_id,
        call.context.client_id,
        call.context.client_host,
        rebalance_timeout_ms(call),
        call.request.session_timeout_ms,
        offered_protocols(call.request),
    )


def rebalance_timeout_ms(call: JoinCall) -> int:
    """Return how long the group may wait for this member to join again."""
    if call.context.api_version < FIRST_VERSION_WITH_REBALANCE_TIMEOUT:
        return call.request.session_timeout_ms
    return max(call.request.rebalance_timeout_ms, 0)


def offered_protocols(request: JoinGroupRequest) -> tuple[MemberProtocol, ...]:
    """Return the protocols in the member's order; of equal names, the first one counts."""
    protocols: dict[str, MemberProtocol] = {}
    for protocol in request.protocols:
        # Large metadata is a view of the request's frame (`decoding.MAX_COPIED_BLOB_BYTES`).
        metadata = bytes(protocol.metadata)
        protocols.setdefault(protocol.name, MemberProtocol(protocol.name, metadata))
    return tuple(protocols.values())


def random_uuid_text(step: Step) -> str:
    """Return a random UUID (version 4) in its canonical text form."""
    return str(UUID(int=step.shard.random.getrandbits(128), version=4))
