"""Description, listing and deletion of consumer groups; checks for commits and fetches of offsets.

ConsumerGroupDescribe (key 69), versions 0-1: v1 distinguishes members of the two protocols. A
commit is checked against the member's epoch. A commit with an older epoch is valid for the
partitions that the member has owned since that epoch or earlier (KIP-1251).
"""

from broker.coordinator.classic_group.classic_group import ClassicGroup
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.consumer_group.member import Assignment, ConsumerMember, Owned
from broker.coordinator.consumer_group.targets import preferred_assignor
from broker.coordinator.group_state.step import Step
from broker.coordinator.output import Token
from broker.metadata.image import TopicsImage
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.consumer_group_describe import Assignment as DescribedAssignment
from common.kafka.protocol.messages.consumer_group_describe import (
    DescribedGroup,
    Member,
    TopicPartitions,
)

CONSUMER_GROUP_TYPE = "consumer"
CLASSIC_MEMBER, CONSUMER_MEMBER = range(2)
FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCH = 9


def describe_consumer_group(step: Step, token: Token, group_id: str) -> None:
    """Describe one group; GROUP_ID_NOT_FOUND if it is not a consumer group."""
    group = step.shard.of(ConsumerGroup).get(group_id)
    if group is None:
        is_other = group_id in step.shard.of(ClassicGroup)
        message = f"Group {group_id} is not a consumer group." if is_other else None
        step.reply(
            token,
            DescribedGroup(
                group_id=group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=message or f"Group {group_id} not found.",
            ),
        )
        return
    topics = step.shard.image().topics
    step.reply(
        token,
        DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.group_epoch,
            assignment_epoch=group.target_epoch,
            assignor_name=preferred_assignor(step, group),
            members=[described(group, member, topics) for member in group.members.values()],
        ),
    )


def described(group: ConsumerGroup, member: ConsumerMember, topics: TopicsImage) -> Member:
    """Describe one member."""
    said = member.subscription
    return Member(
        member_id=member.member_id,
        instance_id=said.instance_id,
        rack_id=said.rack_id,
        member_epoch=member.member_epoch,
        client_id=said.client_id,
        client_host=said.client_host,
        subscribed_topic_names=sorted(said.topic_names),
        subscribed_topic_regex=said.topic_regex or None,
        assignment=with_names(member.current.assigned, topics),
        target_assignment=with_names(group.targets.get(member.member_id, {}), topics),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def with_names(partitions: Assignment | Owned, topics: TopicsImage) -> DescribedAssignment:
    """Return partitions with the names of their topics, without those of deleted topics."""
    return DescribedAssignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
            for topic_id, name, indexes in named_partitions(partitions, topics)
        ]
    )


def named_partitions(
    partitions: Assignment | Owned, topics: TopicsImage
) -> list[tuple[bytes, str, list[int]]]:
    """Return topic ids, topic names and partitions, in order, without those of deleted topics."""
    return [
        (topic_id, topics.by_id[topic_id].name, sorted(each))
        for topic_id, each in sorted(partitions.items())
        if topic_id in topics.by_id
    ]


def committing_member(
    group: ConsumerGroup, member_id: str, member_epoch: int, api_version: int
) -> ConsumerMember | None:
    """Return the member that commits; None for an administrator, if the group has no members.

    Raise UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, or the error of `stale` for a future epoch.
    `commit_refusal` checks older epochs, partition by partition.
    """
    if member_epoch < 0 and not group.members:
        return None
    member = group.member(member_id)
    is_classic = member.uses_classic_protocol
    if not is_classic and api_version < FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCH:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group "
            "protocol",
        )
    if member_epoch > member.member_epoch:
        raise KafkaError(stale(member))
    return member


def stale(member: ConsumerMember) -> ErrorCode:
    """Return the error for a wrong epoch in the member's protocol."""
    if member.uses_classic_protocol:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.STALE_MEMBER_EPOCH


def commit_refusal(
    member: ConsumerMember, member_epoch: int, topic_id: bytes, partition: int
) -> ErrorCode:
    """Return the error for a member's commit of a partition in an epoch; NONE if it is allowed."""
    if member_epoch == member.member_epoch:
        return ErrorCode.NONE
    since = member.current.assignment_epoch(topic_id, partition)
    return stale(member) if since is None or member_epoch < since else ErrorCode.NONE


def validate_fetch(group: ConsumerGroup, member_id: str | None, member_epoch: int) -> None:
    """Raise the error of `stale` for a fetch of offsets in another epoch than the member's."""
    if not member_id and member_epoch < 0:
        return
    member = group.member(member_id or "")
    if member_epoch != member.member_epoch:
        raise KafkaError(stale(member))
