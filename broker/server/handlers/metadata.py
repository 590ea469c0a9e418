"""Metadata (key 3), versions 0-13: brokers, the controller, and the partitions of topics.

v1 tells "no topics" (empty) from "all topics" (null). v4 lets the client forbid auto-creation.
v10 adds topic ids, v12 lets a client ask by id alone (KIP-516).
"""

from broker.errors import ErrorCode, KafkaError
from broker.metadata.image import TopicImage
from broker.metadata.topic_names import INTERNAL_TOPICS
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from broker.server import authorized_operations
from broker.server.broker import Broker
from broker.server.dispatch import RequestContext

NO_TOPIC_ID = bytes(16)
MAX_AUTO_CREATED_TOPICS = 1_000  # of one request; the rest is unknown until asked for again


def handle_metadata(
    broker: Broker, context: RequestContext, request: MetadataRequest
) -> MetadataResponse:
    """Describe the topics asked for, creating unknown ones where both sides allow it."""
    wants_all = request.topics is None or (context.api_version == 0 and not request.topics)
    if wants_all:
        topics = [_describe(image) for image in broker.cluster.topics.by_name.values()]
    else:
        assert request.topics is not None
        topics = _describe_some(broker, context, request.topics, request.allow_auto_topic_creation)
    host, port = broker.advertised(context.connection.peer.listener_name)
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.error_code == ErrorCode.NONE:
                topic.topic_authorized_operations = authorized_operations.ON_TOPIC
    return MetadataResponse(
        cluster_authorized_operations=authorized_operations.ON_CLUSTER
        if request.include_cluster_authorized_operations
        else authorized_operations.NOT_ASKED_FOR,
        brokers=[
            MetadataResponseBroker(
                node_id=broker.config.node_id, host=host, port=port, rack=broker.config.rack
            )
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.config.node_id,
        topics=topics,
    )


def _describe_some(
    broker: Broker,
    context: RequestContext,
    wanted: list[MetadataRequestTopic],
    may_create: bool,
) -> list[MetadataResponseTopic]:
    # Before v4 the client cannot forbid creation; the broker's own setting decides alone.
    may_create = broker.config.auto_create_topics and (may_create or context.api_version < 4)
    creations_left = MAX_AUTO_CREATED_TOPICS if may_create else 0
    described: list[MetadataResponseTopic] = []
    for topic in wanted:
        if topic.name is None:
            described.append(_describe_by_id(broker, topic.topic_id))
            continue
        image = broker.cluster.topics.by_name.get(topic.name)
        if image is None and creations_left > 0:
            creations_left -= 1
            described.append(_create(broker, topic.name))
        elif image is None:
            described.append(_unknown(topic.name))
        else:
            described.append(_describe(image))
    return described


def _create(broker: Broker, name: str) -> MetadataResponseTopic:
    try:
        return _describe(broker.topics.ensure(name))
    except KafkaError as error:
        return MetadataResponseTopic(error_code=error.code, name=name)


def _unknown(name: str) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)


def _describe_by_id(broker: Broker, topic_id: bytes) -> MetadataResponseTopic:
    image = broker.cluster.topics.by_id.get(topic_id)
    if image is None:
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
        )
    return _describe(image)


def _describe(image: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=image.name,
        topic_id=image.topic_id,
        is_internal=image.name in INTERNAL_TOPICS,
        partitions=[
            MetadataResponsePartition(
                partition_index=partition.partition,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
            )
            for partition in image.partitions.values()
        ],
    )
