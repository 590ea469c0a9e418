"""Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords and DescribeProducers."""

from typing import Any

from broker.server.authorization.access import CLUSTER, TOPIC, TRANSACTIONAL_ID, Access, refusal_of
from broker.server.authorization.verdicts import (
    Closed,
    Narrowed,
    OnEach,
    Refused,
    Verdict,
    divide,
)
from common.kafka.acls import AclOperation
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from common.kafka.protocol.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from common.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from common.kafka.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

NO_ID = bytes(16)


def topic_name(access: Access, name: str, topic_id: bytes) -> str | None:
    """Return the name of a topic that a request gives by name or id; None if it is unknown."""
    return name or access.topics.name_of(topic_id)


def may_on_topic(access: Access, operation: AclOperation, name: str | None) -> bool:
    """Return whether an operation is allowed; the handler refuses a topic that is unknown."""
    return name is None or access.may(operation, TOPIC, name)


# --- produce ---


def check_produce(access: Access, request: ProduceRequest, api_version: int) -> Verdict:
    """WRITE on the transactional id and on each topic."""
    transactional_id = request.transactional_id
    if transactional_id is not None and not access.may(
        AclOperation.WRITE, TRANSACTIONAL_ID, transactional_id
    ):
        code = refusal_of(TRANSACTIONAL_ID, transactional_id)
        return _produce_refused(
            request, [_refused_topic(each, code) for each in request.topic_data]
        )
    allowed, denied = divide(
        request.topic_data,
        lambda topic: may_on_topic(
            access, AclOperation.WRITE, topic_name(access, topic.name, topic.topic_id)
        ),
    )
    if not denied:
        return None
    refusals = [_refused_topic(topic, refusal_of(TOPIC, topic.name)) for topic in denied]
    if not allowed or request.acks == 0:
        return _produce_refused(request, refusals)
    request.topic_data = allowed
    return Narrowed(lambda answer: answer.responses.extend(refusals))


def _produce_refused(request: ProduceRequest, refusals: list[TopicProduceResponse]) -> Verdict:
    return Closed() if request.acks == 0 else Refused(ProduceResponse(responses=refusals))


def _refused_topic(topic: TopicProduceData, code: ErrorCode) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
            for data in topic.partition_data
        ],
    )


# --- fetch ---


def check_fetch(access: Access, request: FetchRequest, api_version: int) -> Verdict:
    """CLUSTER_ACTION for a follower, READ on each topic for a consumer.

    A fetch session names a topic once, so the topics in its answers are checked each time.
    """
    if max(request.replica_id, request.replica_state.replica_id) >= 0:
        if access.may(AclOperation.CLUSTER_ACTION, CLUSTER):
            return None
        refusals = [_refused_fetch(topic.topic, topic.topic_id, topic) for topic in request.topics]
        return Refused(
            FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, responses=refusals)
        )

    def may_read(topic: Any) -> bool:
        name = topic_name(access, topic.topic, topic.topic_id)
        return may_on_topic(access, AclOperation.READ, name)

    allowed, denied = divide(request.topics, may_read)
    refusals = [_refused_fetch(topic.topic, topic.topic_id, topic) for topic in denied]
    is_incremental = request.session_epoch > 0
    if denied and not allowed and not is_incremental:
        return Refused(FetchResponse(responses=refusals))
    if not denied and not is_incremental:
        return None
    request.topics = allowed

    def complete(answer: FetchResponse) -> None:
        for response in answer.responses:
            if not may_read(response):
                response.partitions = [
                    _denied(response.topic, each.partition_index) for each in response.partitions
                ]
        answer.responses.extend(refusals)

    return Narrowed(complete)


def _refused_fetch(name: str, topic_id: bytes, topic: Any) -> FetchableTopicResponse:
    return FetchableTopicResponse(
        topic=name,
        topic_id=topic_id,
        partitions=[_denied(name, partition.partition) for partition in topic.partitions],
    )


def _denied(name: str, partition: int) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        error_code=refusal_of(TOPIC, name),
        high_watermark=-1,
        records=b"",
    )


# --- the others ---

check_list_offsets = OnEach(
    entries="topics",
    operation=AclOperation.DESCRIBE,
    kind=TOPIC,
    response=ListOffsetsResponse,
    answers="topics",
    refuse=lambda topic: ListOffsetsTopicResponse(
        name=topic.name,
        partitions=[
            ListOffsetsPartitionResponse(
                partition_index=each.partition_index,
                error_code=refusal_of(TOPIC, topic.name),
                timestamp=-1,
                offset=-1,
            )
            for each in topic.partitions
        ],
    ),
)

check_delete_records = OnEach(
    entries="topics",
    operation=AclOperation.DELETE,
    kind=TOPIC,
    response=DeleteRecordsResponse,
    answers="topics",
    refuse=lambda topic: DeleteRecordsTopicResult(
        name=topic.name,
        partitions=[
            DeleteRecordsPartitionResult(
                partition_index=each.partition_index,
                low_watermark=-1,
                error_code=refusal_of(TOPIC, topic.name),
            )
            for each in topic.partitions
        ],
    ),
)

check_describe_producers = OnEach(
    entries="topics",
    operation=AclOperation.READ,
    kind=TOPIC,
    response=DescribeProducersResponse,
    answers="topics",
    refuse=lambda topic: TopicResponse(
        name=topic.name,
        partitions=[
            PartitionResponse(partition_index=index, error_code=refusal_of(TOPIC, topic.name))
            for index in topic.partition_indexes
        ],
    ),
)

_describe_each_topic = OnEach(
    entries="topics",
    operation=AclOperation.DESCRIBE,
    kind=TOPIC,
    response=OffsetForLeaderEpochResponse,
    answers="topics",
    name_of=lambda topic: topic.topic,
    refuse=lambda topic: OffsetForLeaderTopicResult(
        topic=topic.topic,
        partitions=[
            EpochEndOffset(partition=each.partition, error_code=refusal_of(TOPIC, topic.topic))
            for each in topic.partitions
        ],
    ),
)


def check_offset_for_leader_epoch(
    access: Access, request: OffsetForLeaderEpochRequest, api_version: int
) -> Verdict:
    """CLUSTER_ACTION for a follower, DESCRIBE on each topic for a consumer (KIP-320)."""
    if access.can_see(AclOperation.CLUSTER_ACTION, CLUSTER):
        return None
    return _describe_each_topic(access, request, api_version)
