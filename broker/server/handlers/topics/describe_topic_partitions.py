"""DescribeTopicPartitions (key 75), version 0: topics page by page, with a cursor (KIP-966)."""

from bisect import bisect_left
from collections.abc import Callable

from broker.coordinator.output import TopicRights
from broker.metadata.image import NO_LEADER, TopicImage
from broker.metadata.topic_names import INTERNAL_TOPICS, code_of_unknown
from broker.server.cluster import authorized_operations
from broker.server.cluster.cluster_view import offline_replicas
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import ITEMS_PER_STEP, Steps
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)

MAX_PARTITIONS_PER_PAGE = 2_000  # max.request.partition.size.limit


class DescribeTopicPartitions:
    """Describes topics as the metadata has them."""

    def __init__(
        self, metadata: ClusterMetadata, rights_of: Callable[[RequestContext], TopicRights]
    ) -> None:
        self._metadata = metadata
        self._rights_of = rights_of

    def handle(
        self, context: RequestContext, request: DescribeTopicPartitionsRequest
    ) -> Steps[Answer]:
        """Describe topics in the order of their names, from the cursor, up to a page.

        The cursor of the next page names a topic: so of all topics only those count that the
        client may describe. The check before has looked at topics that are named.
        """
        rights = self._rights_of(context)
        by_name = self._metadata.image.topics.by_name
        asked = {topic.name for topic in request.topics}
        cursor = request.cursor or Cursor(topic_name="", partition_index=0)
        if cursor.partition_index < 0:
            return DescribeTopicPartitionsResponse(topics=[*map(_refused, request.topics)])
        names = sorted(asked or by_name)
        start = bisect_left(names, cursor.topic_name)
        left = max(1, min(request.response_partition_limit, MAX_PARTITIONS_PER_PAGE))
        topics: list[DescribeTopicPartitionsResponseTopic] = []
        for number, name in enumerate(names[start:], 1):
            if not number % ITEMS_PER_STEP:
                yield None
            if not asked and not rights.may_describe(name):
                continue
            first_partition = cursor.partition_index if name == cursor.topic_name else 0
            image = by_name.get(name)
            if image is None:
                topics.append(_unknown(name))
                continue
            if left == 0:
                return DescribeTopicPartitionsResponse(
                    topics=topics, next_cursor=Cursor(topic_name=name, partition_index=0)
                )
            end = min(len(image.partitions), first_partition + left)
            topics.append(self._describe(image, range(first_partition, end)))
            left -= max(0, end - first_partition)
            if end < len(image.partitions):
                return DescribeTopicPartitionsResponse(
                    topics=topics, next_cursor=Cursor(topic_name=name, partition_index=end)
                )
        return DescribeTopicPartitionsResponse(topics=topics)

    def _describe(self, image: TopicImage, wanted: range) -> DescribeTopicPartitionsResponseTopic:
        return DescribeTopicPartitionsResponseTopic(
            name=image.name,
            topic_id=image.topic_id,
            topic_authorized_operations=authorized_operations.ON_TOPIC,
            is_internal=image.name in INTERNAL_TOPICS,
            partitions=[
                DescribeTopicPartitionsResponsePartition(
                    error_code=ErrorCode.LEADER_NOT_AVAILABLE
                    if partition.leader == NO_LEADER
                    else ErrorCode.NONE,
                    partition_index=partition.partition,
                    leader_id=partition.leader,
                    leader_epoch=partition.leader_epoch,
                    replica_nodes=list(partition.replicas),
                    isr_nodes=list(partition.isr),
                    eligible_leader_replicas=list(partition.elr),
                    last_known_elr=list(partition.last_known_elr),
                    offline_replicas=offline_replicas(self._metadata.image.brokers, partition),
                )
                for partition in map(image.partitions.__getitem__, wanted)
            ],
        )


def _refused(topic: TopicRequest) -> DescribeTopicPartitionsResponseTopic:
    """Return the error of an invalid request at a topic: the answer has none at the top level."""
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.INVALID_REQUEST, name=topic.name
    )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code_of_unknown(name),
        name=name,
        topic_authorized_operations=authorized_operations.ON_TOPIC,
    )
