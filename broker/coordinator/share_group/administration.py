"""ShareGroupDescribe (key 77), version 1: state, epochs and members of one group."""

from broker.coordinator.consumer_group.administration import named_partitions
from broker.coordinator.group_state.config import ASSIGNOR
from broker.coordinator.group_state.step import Step
from broker.coordinator.output import Token
from broker.coordinator.share_group.share_group import ShareGroup, ShareMember
from broker.metadata.image import TopicsImage
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    TopicPartitions,
)


def describe_share_group(step: Step, token: Token, group_id: str) -> None:
    """Describe one group; GROUP_ID_NOT_FOUND if it is not a share group."""
    try:
        step.validate_share_groups()
        group = step.group(ShareGroup, group_id)
    except KafkaError as error:
        described = DescribedGroup(
            group_id=group_id, error_code=error.code, error_message=error.message
        )
    else:
        topics = step.shard.image().topics
        described = DescribedGroup(
            error_code=ErrorCode.NONE,
            group_id=group_id,
            group_state=group.state.value,
            group_epoch=group.group_epoch,
            assignment_epoch=group.target_epoch,
            assignor_name=ASSIGNOR,
            members=[described_member(member, topics) for member in group.members.values()],
        )
    step.reply(token, described)


def described_member(member: ShareMember, topics: TopicsImage) -> Member:
    """Describe one member."""
    said = member.subscription
    return Member(
        member_id=member.member_id,
        rack_id=said.rack_id,
        member_epoch=member.member_epoch,
        client_id=said.client_id,
        client_host=said.client_host,
        subscribed_topic_names=sorted(said.topic_names),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, topic_name=name, partitions=partitions)
                for topic_id, name, partitions in named_partitions(
                    member.current.partitions, topics
                )
            ]
        ),
    )
