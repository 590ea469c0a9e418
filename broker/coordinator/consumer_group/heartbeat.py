"""ConsumerGroupHeartbeat (key 68), versions 0-1: join, stay, be assigned, leave (KIP-848).

Epoch 0 joins, -1 leaves, -2 leaves temporarily (static members); any other epoch confirms the
member's epoch. v1 lets the client choose its id (KIP-1082) and subscribe to a pattern.

A heartbeat is handled in this order: check the request (`validate`), find the member (`member_of`),
update its subscription (`subscriptions`), compute targets if due (`targets`), reconcile the member
(`reconciliation`), answer. All refusals come before the first record is written.
"""

from base64 import urlsafe_b64encode
from dataclasses import replace
from uuid import UUID

from broker.coordinator.consumer_group import departures
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.consumer_group.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerMember,
    CurrentAssignment,
    MemberState,
    MemberSubscription,
    same_partitions,
)
from broker.coordinator.consumer_group.migration import Prospect, prospect
from broker.coordinator.consumer_group.reconciliation import reconcile
from broker.coordinator.consumer_group.records import Current, MemberMetadata, Target
from broker.coordinator.consumer_group.regex import compiled
from broker.coordinator.consumer_group.replay import write
from broker.coordinator.consumer_group.subscriptions import refresh, subscribe
from broker.coordinator.consumer_group.targets import maybe_assign, target_of
from broker.coordinator.group_state.config import SETTLING_MS, fits_record, soon_ms
from broker.coordinator.group_state.step import Step
from broker.coordinator.output import ShardContext, Token
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

FIRST_VERSION_WITH_CLIENTS_OWN_ID = 1


def consumer_group_heartbeat(
    step: Step, token: Token, context: ShardContext, request: ConsumerGroupHeartbeatRequest
) -> None:
    """Answer one heartbeat; raise KafkaError, with nothing changed, to refuse it."""
    validate(step, context, request)
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        departures.leave(step, token, request)
        return
    is_joining = request.member_epoch == JOIN_EPOCH
    joined = (
        prospect(step, request.group_id)
        if is_joining
        else Prospect(step.group(ConsumerGroup, request.group_id))
    )
    group = joined.group
    member_id = request.member_id or new_member_id(step)
    member = member_of(step, group, member_id, request)
    # A joining member sends its whole subscription, so a static member does not inherit its
    # predecessor's.
    known = None if member is None or is_joining else member.subscription
    subscription = said(context, request, known)
    if member is None or subscription != member.subscription:
        validate_size(step, MemberMetadata(group.group_id, member_id, subscription))
    joined.settle(step)
    if joined.replaced is not None:
        departures.restart_timers(step, group)
    if member is not None and member.member_id != member_id:
        take_over(step, group, member, member_id)
    before = member.current.assigned if member is not None else {}
    has_changed = subscribe(step, group, member_id, subscription)
    refresh(step, group, has_changed=has_changed, rights=context.rights)
    is_up_to_date = maybe_assign(step, group)
    member = group.members[member_id]
    follow_target(step, group, member, confirmed_partitions(member, request))
    departures.restart_session(step, group, member)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=member.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(step, group, member, is_up_to_date),
    )
    if is_whole(request) or not same_partitions(before, member.current.assigned):
        response.assignment = assignment_of(member.current)
    step.reply(token, response)


def refuse_heartbeat(refusal: KafkaError) -> ConsumerGroupHeartbeatResponse:
    """Build the answer to a refused heartbeat."""
    return ConsumerGroupHeartbeatResponse(
        error_code=refusal.code, error_message=refusal.message or None
    )


# Validation of the request.


def validate(step: Step, context: ShardContext, request: ConsumerGroupHeartbeatRequest) -> None:
    """Raise INVALID_REQUEST or the like for a request that is wrong in every state of a group."""
    if not step.are_consumer_groups_enabled:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The consumer protocol is not enabled.")
    is_joining = request.member_epoch == JOIN_EPOCH
    chooses_id = context.api_version >= FIRST_VERSION_WITH_CLIENTS_OWN_ID
    problems = {
        "MemberId can't be empty.": (chooses_id or not is_joining) and not request.member_id,
        "GroupId can't be empty.": not request.group_id,
        "InstanceId can't be empty.": request.instance_id == "",
        "RackId can't be empty.": request.rack_id == "",
        "InstanceId can't be null.": request.member_epoch == STATIC_LEAVE_EPOCH
        and request.instance_id is None,
        "MemberEpoch is invalid.": request.member_epoch < STATIC_LEAVE_EPOCH,
    }
    if is_joining:
        problems |= {
            "RebalanceTimeoutMs must be provided in first request.": request.rebalance_timeout_ms
            == -1,
            "TopicPartitions must be empty when (re-)joining.": request.topic_partitions != [],
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.": request.subscribed_topic_names is None
            and request.subscribed_topic_regex is None,
        }
    for problem, is_so in problems.items():
        if is_so:
            raise KafkaError(ErrorCode.INVALID_REQUEST, problem)
    validate_words(step, context, request)


def validate_words(
    step: Step, context: ShardContext, request: ConsumerGroupHeartbeatRequest
) -> None:
    """Refuse names too long for a record, an unknown assignor, and an invalid pattern."""
    names = (request.group_id, request.member_id, request.instance_id, request.rack_id)
    if not all(map(fits_record, (*names, context.client_id))):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A name is too long.")
    if sum(map(len, request.subscribed_topic_names or ())) > step.shard.config.max_batch_bytes:
        raise too_large()  # before anything is built from them
    assignors = step.shard.config.consumer.assignors
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )
    if request.subscribed_topic_regex:
        compiled(request.subscribed_topic_regex)


def validate_size(step: Step, metadata: MemberMetadata) -> None:
    """Raise `too_large` for a member that does not fit into a record."""
    if not step.fits(metadata.encoded()):
        raise too_large()


def too_large() -> KafkaError:
    """Return the error for a subscription that does not fit into a record, with Kafka's code."""
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The subscription is too large.")


# The member of the request.


def new_member_id(step: Step) -> str:
    """Return a new id for a client of version 0: a UUID in Kafka's spelling."""
    uuid = UUID(int=step.shard.random.getrandbits(128), version=4)
    return urlsafe_b64encode(uuid.bytes).rstrip(b"=").decode()


def member_of(
    step: Step, group: ConsumerGroup, member_id: str, request: ConsumerGroupHeartbeatRequest
) -> ConsumerMember | None:
    """Return the member that sends the heartbeat, None for a new one; raise KafkaError.

    A static member that returns with another id is found under its old one.
    """
    if request.instance_id is not None:
        member = static_member_of(group, member_id, request.instance_id, request.member_epoch)
    else:
        member = group.members.get(member_id)
    if request.member_epoch == JOIN_EPOCH:
        limit = step.shard.config.consumer.max_size
        if member is None and len(group.members) >= limit:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {limit} members.",
            )
        return member
    if member is None:
        member = group.member(member_id)
    validate_epoch(member, request)
    return member


def static_member_of(
    group: ConsumerGroup, member_id: str, instance_id: str, member_epoch: int
) -> ConsumerMember | None:
    """Return the member with the instance id; another may replace it once it has left."""
    member = group.static_member(instance_id)
    if member_epoch == JOIN_EPOCH:
        if member is not None and member.member_id != member_id and not member.has_left_for_a_while:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} cannot join the group "
                "because the instance id is in use by another member.",
            )
        return member
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def validate_epoch(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> None:
    """Raise FENCED_MEMBER_EPOCH for a wrong epoch.

    The previous epoch is valid too, if the member reports only partitions that it owns: the answer
    with the new epoch was lost.
    """
    current = member.current
    if current.state is MemberState.UNKNOWN and request.topic_partitions != []:
        raise fenced("The consumer group member is in a unknown state.")
    if request.member_epoch > current.member_epoch:
        raise fenced(
            f"The consumer group member has a greater member epoch ({request.member_epoch}) than "
            f"the one known by the group coordinator ({current.member_epoch})."
        )
    if request.member_epoch == current.member_epoch:
        return
    reported = reported_partitions(request)
    is_own = reported is not None and all(
        partition in current.assigned.get(topic_id, ()) for topic_id, partition in reported
    )
    if request.member_epoch != current.previous_member_epoch or not is_own:
        raise fenced(
            f"The consumer group member has a smaller member epoch ({request.member_epoch}) than "
            f"the one known by the group coordinator ({current.member_epoch})."
        )


def fenced(reason: str) -> KafkaError:
    """Return the error that makes a member rejoin from scratch."""
    instruction = "The member must abandon all its partitions and rejoin."
    return KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, f"{reason} {instruction}")


def take_over(step: Step, group: ConsumerGroup, member: ConsumerMember, member_id: str) -> None:
    """Move the records of a returning static member to its new id."""
    subscription, target = member.subscription, group.targets.get(member.member_id, {})
    current = replace(
        member.current, member_epoch=JOIN_EPOCH, previous_member_epoch=member.member_epoch
    )
    departures.erase(step, group, member)
    write(step, MemberMetadata(group.group_id, member_id, subscription))
    write(step, Target(group.group_id, member_id, target))
    write(step, Current(group.group_id, member_id, current))


# The content of the request and of the answer.


def said(
    context: ShardContext,
    request: ConsumerGroupHeartbeatRequest,
    before: MemberSubscription | None,
) -> MemberSubscription:
    """Return the member's subscription; a field that the request leaves out keeps its value."""
    subscription = before or MemberSubscription()
    names = request.subscribed_topic_names
    regex = request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    return MemberSubscription(
        instance_id=request.instance_id or subscription.instance_id,
        rack_id=request.rack_id or subscription.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        topic_names=subscription.topic_names if names is None else frozenset(names),
        topic_regex=subscription.topic_regex if regex is None else regex,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        server_assignor=request.server_assignor or subscription.server_assignor,
    )


def reported_partitions(
    request: ConsumerGroupHeartbeatRequest,
) -> frozenset[tuple[bytes, int]] | None:
    """Return the partitions that the member reports to own; None if it reports none."""
    if request.topic_partitions is None:
        return None
    return frozenset(
        (topic.topic_id, partition)
        for topic in request.topic_partitions
        for partition in topic.partitions
    )


def confirmed_partitions(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest
) -> frozenset[tuple[bytes, int]] | None:
    """Return the partitions that the member owns in its current epoch; None if unknown.

    A heartbeat of the previous epoch may have been sent before the member learnt of partitions
    that it got in this epoch, so a partition that is missing in it is not revoked. The next
    heartbeat of this epoch shows it. Apache Kafka accepts the old report, and may assign a
    partition that the member still holds.
    """
    if request.member_epoch not in (JOIN_EPOCH, member.member_epoch):
        return None
    return reported_partitions(request)


def follow_target(
    step: Step,
    group: ConsumerGroup,
    member: ConsumerMember,
    reported: frozenset[tuple[bytes, int]] | None,
) -> None:
    """Reconcile a member with its target, and write the result."""
    following = reconcile(
        member.current,
        target_of(step, group, member),
        target_epoch=group.target_epoch,
        reported=reported,
        owners=group.owners,
    )
    if following is not member.current:
        write(step, Current(group.group_id, member.member_id, following))
        departures.watch_revocation(step, group, member)


def heartbeat_interval_ms(
    step: Step, group: ConsumerGroup, member: ConsumerMember, is_up_to_date: bool
) -> int:
    """Return the member's heartbeat interval: short while its assignment is about to change.

    The members of a group mostly arrive together: for a while after an assignment, more members
    may join, and this one must revoke partitions for them.
    """
    interval_ms = step.consumer_config(group.group_id).heartbeat_interval_ms
    since_assignment_ms = step.now.timestamp_ms - group.assignment_timestamp_ms
    is_young = 0 <= since_assignment_ms < SETTLING_MS
    if is_up_to_date and group.has_reached_target(member) and not is_young:
        return interval_ms
    return min(interval_ms, soon_ms(len(group.members)))


def is_whole(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return True for a full request, which the coordinator answers with the full assignment."""
    has_subscription = (
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    )
    is_complete = request.rebalance_timeout_ms != -1 and request.topic_partitions is not None
    return request.member_epoch == JOIN_EPOCH or (is_complete and has_subscription)


def assignment_of(current: CurrentAssignment) -> Assignment:
    """Return the assignment of a member for the answer."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in sorted(current.assigned.items())
        ]
    )
