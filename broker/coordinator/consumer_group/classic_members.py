"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of classic members in a consumer group (KIP-848).

A classic member's generation is its member epoch, and its SyncGroup returns the coordinator's
assignment. Its Heartbeat returns REBALANCE_IN_PROGRESS when its assignment must change; the member
then joins again and reports the partitions it owns, as a consumer does with every heartbeat. No
request is parked: no leader computes the assignment, and each member is assigned separately. A
member has its rebalance timeout to join again after that error, and to sync after it joined.
"""

from broker.coordinator.classic_group.join import (
    FIRST_VERSION_REQUIRING_MEMBER_ID,
    JoinCall,
    offered_protocols,
    random_uuid_text,
    rebalance_timeout_ms,
    validate_request,
)
from broker.coordinator.classic_group.liveness import FIRST_VERSION_WITH_MEMBERS, answer_for
from broker.coordinator.classic_group.member import CONSUMER_PROTOCOL_TYPE
from broker.coordinator.classic_group.rebalance import join_refusal
from broker.coordinator.classic_group.sync import FIRST_VERSION_WITH_PROTOCOL
from broker.coordinator.consumer_group import departures
from broker.coordinator.consumer_group.consumer_group import ConsumerDeadline, ConsumerGroup
from broker.coordinator.consumer_group.heartbeat import follow_target, take_over
from broker.coordinator.consumer_group.member import (
    ClassicMetadata,
    ConsumerMember,
    MemberState,
    MemberSubscription,
)
from broker.coordinator.consumer_group.migration import as_bytes
from broker.coordinator.consumer_group.records import MemberMetadata
from broker.coordinator.consumer_group.subscriptions import refresh, subscribe
from broker.coordinator.consumer_group.targets import maybe_assign
from broker.coordinator.group_state.step import Deadline, Step
from broker.coordinator.output import ShardContext, Token
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_subscription,
)
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from common.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from common.kafka.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from common.kafka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from common.kafka.protocol.wire import DecodeError

Reported = frozenset[tuple[bytes, int]]


def join_group(step: Step, token: Token, context: ShardContext, request: JoinGroupRequest) -> None:
    """Add a classic member, or reconcile one that joins again."""
    validate_request(step.shard.config, context, request)
    group = step.shard.of(ConsumerGroup)[request.group_id]
    call = JoinCall(token, context, request)
    said = read_subscription(group, request)
    member = joining_member(step, group, request)
    if member is None and request.member_id and said.owned_partitions:
        # The member was removed and does not know it. Its partitions may have another owner, so
        # it must give them up.
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    if needs_an_id(context, request):
        # The coordinator does not remember the id: a member that joins with any id is added.
        member_id = f"{context.client_id}-{random_uuid_text(step)}"
        code = ErrorCode.MEMBER_ID_REQUIRED
        step.reply(token, join_refusal(code, member_id, context.api_version))
        return
    prefix = request.group_instance_id or context.client_id
    member_id = request.member_id or f"{prefix}-{random_uuid_text(step)}"
    subscription = subscription_of(call, said)
    if not step.fits(MemberMetadata(group.group_id, member_id, subscription).encoded()):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if member is not None and member.member_id != member_id:
        take_over(step, group, member, member_id)
    has_changed = subscribe(step, group, member_id, subscription)
    refresh(step, group, has_changed=has_changed, rights=context.rights)
    maybe_assign(step, group)
    member = group.members[member_id]
    follow_target(step, group, member, owned_partitions(step, said))
    departures.restart_session(step, group, member)
    step.cancel(Deadline(ConsumerDeadline.CLASSIC_JOIN, group.group_id, member_id))
    wait_for(step, group, member, ConsumerDeadline.CLASSIC_SYNC)
    step.reply(
        token,
        JoinGroupResponse(
            generation_id=member.member_epoch,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
            member_id=member_id,
        ),
    )


def needs_an_id(context: ShardContext, request: JoinGroupRequest) -> bool:
    """Return True if the member must join again with the id that it receives (KIP-394)."""
    return (
        not request.member_id
        and request.group_instance_id is None
        and context.api_version >= FIRST_VERSION_REQUIRING_MEMBER_ID
    )


def joining_member(
    step: Step, group: ConsumerGroup, request: JoinGroupRequest
) -> ConsumerMember | None:
    """Return the member that joins, None for a new one; a static member is under its old id.

    Raise UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or GROUP_MAX_SIZE_REACHED.
    """
    if request.group_instance_id is None:
        member = group.members.get(request.member_id)
    else:
        member = group.static_member(request.group_instance_id)
        if request.member_id:
            # A member that knows its id does not replace another one.
            if member is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if member.member_id != request.member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
    if member is None and len(group.members) >= step.shard.config.consumer.max_size:
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    return member


def read_subscription(
    group: ConsumerGroup, request: JoinGroupRequest
) -> ConsumerProtocolSubscription:
    """Return a member's subscription; raise INCONSISTENT_GROUP_PROTOCOL.

    The protocol type must be `consumer`, and the member must share a protocol with the group's
    other classic members.
    """
    names = {protocol.name for protocol in request.protocols}
    spoken = [
        {protocol.name for protocol in classic.protocols}
        for member_id, member in group.members.items()
        if (classic := member.subscription.classic) is not None and member_id != request.member_id
    ]
    if (
        request.protocol_type != CONSUMER_PROTOCOL_TYPE
        or not names
        or not names.intersection(*spoken)
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    try:
        return decode_subscription(request.protocols[0].metadata)
    except DecodeError as error:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL) from error


def subscription_of(
    call: JoinCall, subscription: ConsumerProtocolSubscription
) -> MemberSubscription:
    """Return the member's record for a JoinGroup."""
    return MemberSubscription(
        instance_id=call.request.group_instance_id,
        rack_id=subscription.rack_id or None,
        client_id=call.context.client_id,
        client_host=call.context.client_host,
        topic_names=frozenset(subscription.topics),
        rebalance_timeout_ms=rebalance_timeout_ms(call),
        classic=ClassicMetadata(call.request.session_timeout_ms, offered_protocols(call.request)),
    )


def owned_partitions(step: Step, subscription: ConsumerProtocolSubscription) -> Reported:
    """Return the partitions that a member reports; a subscription of version 0 reports none."""
    topics = step.shard.image().topics.by_name
    return frozenset(
        (topics[owned.topic].topic_id, partition)
        for owned in subscription.owned_partitions
        if owned.topic in topics
        for partition in owned.partitions
    )


def wait_for(
    step: Step, group: ConsumerGroup, member: ConsumerMember, kind: ConsumerDeadline
) -> None:
    """Start a member's rebalance timeout, unless it is already running."""
    deadline = Deadline(kind, group.group_id, member.member_id)
    if deadline not in step.shard.timers:
        step.schedule(deadline, max(member.subscription.rebalance_timeout_ms, 0))


def on_classic_deadline(step: Step, group: ConsumerGroup, member_id: str) -> None:
    """Remove a classic member that did not join again, or did not sync, in time."""
    member = group.members.get(member_id)
    if member is not None and member.uses_classic_protocol:
        departures.remove(step, group, [member], "it did not rejoin or sync in time")


def classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Return a classic member; raise UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
    if instance_id is not None:
        member = group.static_member(instance_id)
        if member is not None and member.member_id != member_id:
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
    member = group.member(member_id)
    if not member.uses_classic_protocol:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def sync_group(step: Step, token: Token, context: ShardContext, request: SyncGroupRequest) -> None:
    """Answer with the assignment of a classic member."""
    group = step.shard.of(ConsumerGroup)[request.group_id]
    if context.api_version >= FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member = classic_member(group, request.member_id, request.group_instance_id)
    if request.generation_id != member.member_epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    classic = member.subscription.classic
    assert classic is not None, member
    spoken = (None, classic.protocols[0].name)
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
        request.protocol_name not in spoken
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if (
        group.group_epoch > member.member_epoch
        and member.current.state is not MemberState.UNREVOKED_PARTITIONS
    ):
        wait_for(step, group, member, ConsumerDeadline.CLASSIC_JOIN)
        step.reply(token, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        return
    step.cancel(Deadline(ConsumerDeadline.CLASSIC_SYNC, group.group_id, member.member_id))
    departures.restart_session(step, group, member)
    assigned = {topic_id: frozenset(each) for topic_id, each in member.current.assigned.items()}
    step.reply(
        token,
        SyncGroupResponse(
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            protocol_name=classic.protocols[0].name,
            assignment=as_bytes(assigned, classic, step.shard.image().topics),
        ),
    )


def heartbeat(step: Step, token: Token, context: ShardContext, request: HeartbeatRequest) -> None:
    """Restart a classic member's session; answer REBALANCE_IN_PROGRESS if it must join again."""
    group = step.shard.of(ConsumerGroup)[request.group_id]
    member = classic_member(group, request.member_id, request.group_instance_id)
    if request.generation_id != member.member_epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    departures.restart_session(step, group, member)
    code = ErrorCode.NONE
    if must_rejoin(group, member):
        wait_for(step, group, member, ConsumerDeadline.CLASSIC_JOIN)
        code = ErrorCode.REBALANCE_IN_PROGRESS
    step.reply(token, HeartbeatResponse(error_code=code))


def must_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return True if a JoinGroup would change the member's assignment or epoch."""
    match member.current.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS if not is_waiting(group, member):
            return True
    return member.member_epoch < group.group_epoch


def is_waiting(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return True if other members own all missing partitions of the member's target."""
    target = group.targets.get(member.member_id, {})
    return all(
        group.owner_of(topic_id, partition) is not None
        for topic_id, partitions in target.items()
        for partition in partitions
    )


def leave_group(
    step: Step, token: Token, context: ShardContext, request: LeaveGroupRequest
) -> None:
    """Remove members at once."""
    group = step.shard.of(ConsumerGroup)[request.group_id]
    has_members = context.api_version >= FIRST_VERSION_WITH_MEMBERS
    identities = request.members if has_members else [MemberIdentity(member_id=request.member_id)]
    leaving: dict[str, ConsumerMember] = {}
    answers = []
    for identity in identities:
        code = ErrorCode.NONE
        try:
            member = leaving_member(group, identity)
            leaving[member.member_id] = member
        except KafkaError as refusal:
            code = refusal.code
        answers.append(answer_for(identity, code))
    if leaving:
        departures.remove(step, group, leaving.values(), "left")
    if has_members:
        step.reply(token, LeaveGroupResponse(members=answers))
    else:
        step.reply(token, LeaveGroupResponse(error_code=answers[0].error_code))


def leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    """Return the member to remove; an administrator names a static one by its instance id."""
    if identity.member_id or identity.group_instance_id is None:
        return classic_member(group, identity.member_id, identity.group_instance_id)
    member = group.static_member(identity.group_instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member
