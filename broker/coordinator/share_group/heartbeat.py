"""ShareGroupHeartbeat (key 76), version 1: join, stay, be assigned, leave (KIP-932).

Epoch 0 joins, -1 leaves; any other epoch confirms the member's epoch. The client chooses its member
id. There are no static members, and no patterns.

A heartbeat is handled in this order: check the request (`validate`), find the member (`member_of`),
update its subscription, compute targets if due (`targets`), give the member its target, have state
begun (`initialization`), answer. All refusals come before the first record is written.
"""

from broker.coordinator.consumer_group.heartbeat import too_large
from broker.coordinator.consumer_group.subscriptions import compute_metadata_hash
from broker.coordinator.group_state.config import SETTLING_MS, fits_record, soon_ms
from broker.coordinator.group_state.step import Step
from broker.coordinator.output import ShardContext, Token
from broker.coordinator.share_group import departures
from broker.coordinator.share_group.initialization import maybe_initialize
from broker.coordinator.share_group.records import ShareGroupEpoch, ShareMemberMetadata
from broker.coordinator.share_group.replay import write
from broker.coordinator.share_group.share_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    MAX_MEMBER_ID_CHARACTERS,
    ShareGroup,
    ShareMember,
    ShareSubscription,
)
from broker.coordinator.share_group.targets import (
    follow_target,
    is_waiting_for_epoch,
    maybe_assign,
)
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)


def share_group_heartbeat(
    step: Step, token: Token, context: ShardContext, request: ShareGroupHeartbeatRequest
) -> None:
    """Answer one heartbeat; raise KafkaError, with nothing changed, to refuse it."""
    validate(step, context, request)
    if request.member_epoch == LEAVE_EPOCH:
        departures.leave(step, token, request)
        return
    is_joining = request.member_epoch == JOIN_EPOCH
    group = (
        joined(step, request.group_id) if is_joining else step.group(ShareGroup, request.group_id)
    )
    member = member_of(step, group, request)
    subscription = said(context, request, None if member is None else member.subscription)
    record = ShareMemberMetadata(group.group_id, request.member_id, subscription)
    if not step.fits(record.encoded()):
        raise too_large()
    before = {} if member is None else member.current.partitions
    has_changed = member is None or subscription.topic_names != member.subscription.topic_names
    step.shard.of(ShareGroup)[group.group_id] = group
    if member is None or subscription != member.subscription:
        write(step, record)
    has_changed = refresh(step, group, has_changed=has_changed)
    is_up_to_date = maybe_assign(step, group)
    member = group.members[request.member_id]
    follow_target(step, group, member, has_changed=has_changed)
    departures.restart_session(step, group, member.member_id)
    is_settled = not maybe_initialize(step, group) and is_up_to_date
    response = ShareGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(step, group, is_settled=is_settled),
    )
    is_full = is_joining or request.subscribed_topic_names is not None
    if is_full or member.current.partitions != before:
        response.assignment = assignment_of(member)
    step.reply(token, response)


def refuse_heartbeat(refusal: KafkaError) -> ShareGroupHeartbeatResponse:
    """Build the answer to a refused heartbeat."""
    return ShareGroupHeartbeatResponse(
        error_code=refusal.code, error_message=refusal.message or None
    )


def validate(step: Step, context: ShardContext, request: ShareGroupHeartbeatRequest) -> None:
    """Raise INVALID_REQUEST or the like for a request that is wrong in every state of a group."""
    step.validate_share_groups()
    problems = {
        "Invalid member id in the request.": not (
            0 < len(request.member_id) <= MAX_MEMBER_ID_CHARACTERS
        ),
        "GroupId can't be empty.": not request.group_id,
        "RackId can't be empty.": request.rack_id == "",
        "SubscribedTopicNames must be set in first request.": request.member_epoch == JOIN_EPOCH
        and not request.subscribed_topic_names,
        "MemberEpoch is invalid.": request.member_epoch < LEAVE_EPOCH,
        "A name is too long.": not all(
            map(
                fits_record,
                (request.group_id, request.member_id, request.rack_id, context.client_id),
            )
        ),
    }
    for problem, is_so in problems.items():
        if is_so:
            raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
    if sum(map(len, request.subscribed_topic_names or ())) > step.shard.config.max_batch_bytes:
        raise too_large()  # before anything is built from them


def joined(step: Step, group_id: str) -> ShareGroup:
    """Return the group to join, which may be new; raise GROUP_ID_NOT_FOUND for another type."""
    if step.shard.has_other_group(group_id, than=step.shard.of(ShareGroup)):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    return step.shard.of(ShareGroup).get(group_id) or ShareGroup(group_id)


def member_of(
    step: Step, group: ShareGroup, request: ShareGroupHeartbeatRequest
) -> ShareMember | None:
    """Return the member that sends the heartbeat, None for a new one; raise KafkaError."""
    member = group.members.get(request.member_id)
    limit = step.shard.config.share.max_size
    if member is None and len(group.members) >= limit:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {limit} members.",
        )
    if request.member_epoch == JOIN_EPOCH:
        return member
    member = group.member(request.member_id)
    known = member.member_epoch
    if request.member_epoch > known:
        raise fenced(
            f"The share group member has a greater member epoch ({request.member_epoch}) than the "
            f"one known by the group coordinator ({known})."
        )
    previous = member.current.previous_member_epoch
    if request.member_epoch < known and request.member_epoch != previous:
        raise fenced(
            f"The share group member has a smaller member epoch ({request.member_epoch}) than the "
            f"one known by the group coordinator ({known}), and it does not match the previous "
            f"member epoch ({previous})."
        )
    return member


def fenced(reason: str) -> KafkaError:
    """Return the error that makes a member rejoin from scratch."""
    instruction = "The member must abandon all its partitions and rejoin."
    return KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, f"{reason} {instruction}")


def said(
    context: ShardContext,
    request: ShareGroupHeartbeatRequest,
    before: ShareSubscription | None,
) -> ShareSubscription:
    """Return the member's subscription; a field that the request leaves out keeps its value."""
    subscription = before or ShareSubscription()
    names = request.subscribed_topic_names
    return ShareSubscription(
        rack_id=request.rack_id or subscription.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        topic_names=subscription.topic_names if names is None else frozenset(names),
    )


def refresh(step: Step, group: ShareGroup, *, has_changed: bool) -> bool:
    """Begin a new group epoch if members, topics or partitions with state have changed.

    Return whether it has begun.
    """
    topics_version = step.shard.topics_version
    has_changed |= is_waiting_for_epoch(step, group)
    if not has_changed and group.seen_topics_version == topics_version:
        return False
    group.seen_topics_version = topics_version
    metadata_hash = compute_metadata_hash(step, group)
    if not has_changed and metadata_hash == group.metadata_hash:
        return False
    write(step, ShareGroupEpoch(group.group_id, group.group_epoch + 1, metadata_hash))
    step.shard.rebalance_counts[ShareGroup] += 1
    return True


def heartbeat_interval_ms(step: Step, group: ShareGroup, *, is_settled: bool) -> int:
    """Return the heartbeat interval: short while the assignment is about to change.

    With Kafka's interval a new group would wait five seconds for its first partitions.
    """
    interval_ms = step.share_config(group.group_id).heartbeat_interval_ms
    since_assignment_ms = step.now.timestamp_ms - group.assignment_timestamp_ms
    if is_settled and not 0 <= since_assignment_ms < SETTLING_MS:
        return interval_ms
    return min(interval_ms, soon_ms(len(group.members)))


def assignment_of(member: ShareMember) -> Assignment:
    """Return the assignment of a member for the answer."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in sorted(member.current.partitions.items())
        ]
    )
