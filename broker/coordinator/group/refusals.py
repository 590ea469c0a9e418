"""Turns an answer that can no longer be sent into a refusal of the same kind.

If a batch cannot be appended, or the shard moves to another broker, every client that waits for an
answer gets an error instead, and retries.
"""

from collections.abc import Callable

from broker.coordinator.output import Reply
from broker.coordinator.share_group.offsets import Plan
from broker.coordinator.streams_group.heartbeat import HeartbeatAnswer
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.consumer_group_describe import (
    DescribedGroup as DescribedConsumerGroup,
)
from common.kafka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from common.kafka.protocol.messages.delete_groups import DeletableGroupResult
from common.kafka.protocol.messages.describe_groups import DescribedGroup
from common.kafka.protocol.messages.heartbeat import HeartbeatResponse
from common.kafka.protocol.messages.join_group import JoinGroupResponse
from common.kafka.protocol.messages.leave_group import LeaveGroupResponse
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from common.kafka.protocol.messages.offset_delete import OffsetDeleteResponse
from common.kafka.protocol.messages.offset_fetch import OffsetFetchResponseGroup
from common.kafka.protocol.messages.share_group_describe import (
    DescribedGroup as DescribedShareGroup,
)
from common.kafka.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from common.kafka.protocol.messages.streams_group_describe import (
    DescribedGroup as DescribedStreamsGroup,
)
from common.kafka.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from common.kafka.protocol.messages.sync_group import SyncGroupResponse
from common.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

IDENTITY_FIELDS: dict[type, tuple[str, ...]] = {
    JoinGroupResponse: ("member_id", "protocol_name"),
    SyncGroupResponse: (),
    HeartbeatResponse: (),
    LeaveGroupResponse: (),
    OffsetFetchResponseGroup: ("group_id",),
    OffsetDeleteResponse: (),
    DescribedGroup: ("group_id",),
    ConsumerGroupHeartbeatResponse: (),
    DescribedConsumerGroup: ("group_id",),
    DeletableGroupResult: ("group_id",),
    ShareGroupHeartbeatResponse: (),
    DescribedShareGroup: ("group_id",),
    DescribedStreamsGroup: ("group_id",),
    Plan: ("group_id",),
}
"""The responses with one top-level error code, and the other fields that a refusal keeps."""


def refuse(reply: Reply, code: ErrorCode) -> Reply:
    """Return the reply as a refusal. A list of groups becomes an empty list."""
    return Reply(reply.token, _refused(reply.response, code))


def _refused(response: object, code: ErrorCode) -> object:
    if isinstance(response, list):
        return []
    if isinstance(response, HeartbeatAnswer):
        return HeartbeatAnswer(StreamsGroupHeartbeatResponse(error_code=code))
    if isinstance(response, ErrorCode):
        return code
    if isinstance(response, TxnOffsetCommitResponse):
        return TxnOffsetCommitResponse(
            topics=[_refused_transactional(each, code) for each in response.topics]
        )
    if isinstance(response, OffsetCommitResponse):
        return OffsetCommitResponse(topics=[_refused_topic(each, code) for each in response.topics])
    kind: Callable[..., object] = type(response)
    kept = {name: getattr(response, name) for name in IDENTITY_FIELDS[type(response)]}
    return kind(error_code=code, **kept)


def _refused_transactional(
    topic: TxnOffsetCommitResponseTopic, code: ErrorCode
) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )


def _refused_topic(topic: OffsetCommitResponseTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )
