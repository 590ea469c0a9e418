"""Metadata (key 3), versions 0-13: brokers, the controller, and the partitions of topics.

v1 tells "no topics" (empty) from "all topics" (null). v4 lets the client forbid auto-creation.
v10 adds topic ids, v12 lets a client ask by id alone (KIP-516).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice

from broker.config.broker_config import BrokerConfig
from broker.metadata.image import NO_LEADER, PartitionImage, TopicImage
from broker.metadata.topic_names import INTERNAL_TOPICS, code_of_unknown
from broker.server.cluster import authorized_operations
from broker.server.cluster.auto_topics import AutoTopics
from broker.server.cluster.cluster_view import controller_id, live_brokers, offline_replicas
from broker.server.cluster.departures import Departures
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.request_entries import distinct
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import ITEMS_PER_STEP, Steps, each
from broker.server.quotas.mutations import Creations
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from common.kafka.protocol.wire import ZERO_UUID

FIRST_VERSION_BY_ID = 12
TOPICS_PER_STEP = 8
Found = Iterable[TopicImage | MetadataResponseTopic]

MAX_AUTO_CREATED_TOPICS = 1_000  # of one request; the rest is unknown until asked for again


class Metadata:
    """Describes the cluster to the clients of one listener."""

    def __init__(
        self,
        config: BrokerConfig,
        metadata: ClusterMetadata,
        auto_topics: AutoTopics,
        departures: Departures,
        creations: Creations,
    ) -> None:
        self._config = config
        self._creations = creations
        self._metadata = metadata
        self._auto_topics = auto_topics
        self._departures = departures

    def handle(self, context: RequestContext, request: MetadataRequest) -> Answer | Steps[Answer]:
        """Describe the topics; create unknown ones if the client and the broker allow it."""
        small = None if self._departures.has_doubts else self._find_small(request)
        if small is not None:
            return self._response(context, request, [self._describe(request, small)])
        return self._describe_all(context, request)

    def _find_small(self, request: MetadataRequest) -> TopicImage | None:
        """Return the single small topic that most requests ask for, if it exists."""
        if not request.topics or len(request.topics) != 1 or _is_by_id(request.topics[0]):
            return None
        image = self._metadata.image.topics.by_name.get(request.topics[0].name or "")
        return image if image is not None and _is_small(image) else None

    def _describe_all(self, context: RequestContext, request: MetadataRequest) -> Steps[Answer]:
        if request.topics is None or (context.api_version == 0 and not request.topics):
            return (yield from self._describe_known(context, request, self._all_topics))
        # A topic that is named twice is described once, as in Kafka.
        wanted = distinct(request.topics, _name_or_id)
        if context.api_version < FIRST_VERSION_BY_ID and any(map(_is_by_id, wanted)):
            return MetadataResponse(topics=[_refused(topic) for topic in wanted])
        unknown = self._to_create(context, request, wanted)
        if not unknown:
            find = partial(self._find, wanted, {})
            return (yield from self._describe_known(context, request, find))
        refused = yield from self._create(context, unknown)
        return (yield from self._respond(context, request, self._find(wanted, refused)))

    def _create(self, context: RequestContext, unknown: list[str]) -> Steps[dict[str, ErrorCode]]:
        """Create topics as far as the client's quota goes; return the errors of the others."""
        count = self._config.partition_count
        creatable = self._creations.take(context, dict.fromkeys(unknown, count))
        refused = yield from self._auto_topics.ensure(creatable)
        self._creations.give_back(context, count * len(refused))
        left = unknown[len(creatable) :]
        return refused | dict.fromkeys(left, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _all_topics(self) -> Iterable[TopicImage]:
        # A copy, because the topics may change between two steps.
        return list(self._metadata.image.topics.by_name.values())

    def _describe_known(
        self, context: RequestContext, request: MetadataRequest, find: Callable[[], Found]
    ) -> Steps[Answer]:
        """Describe existing topics; wait first for leaders that are in doubt."""
        if self._departures.has_doubts:
            leaders: set[int] = set()
            for number, topic in enumerate(find(), 1):
                if isinstance(topic, TopicImage):
                    leaders.update(partition.leader for partition in topic.partitions.values())
                if not number % ITEMS_PER_STEP:
                    yield None
            yield self._departures.when_known(leaders)
        return (yield from self._respond(context, request, find()))

    def _to_create(
        self,
        context: RequestContext,
        request: MetadataRequest,
        wanted: list[MetadataRequestTopic],
    ) -> list[str]:
        # Before v4 the client cannot forbid creation; the broker's own setting decides alone.
        may_create = request.allow_auto_topic_creation or context.api_version < 4
        if not (may_create and self._config.auto_create_topics):
            return []
        by_name = self._metadata.image.topics.by_name
        named = (topic.name for topic in wanted if topic.name is not None)
        # So many are soon found, or all others are there.
        return [*islice((name for name in named if name not in by_name), MAX_AUTO_CREATED_TOPICS)]

    def _respond(
        self,
        context: RequestContext,
        request: MetadataRequest,
        found: Found,
    ) -> Steps[Answer]:
        topics: list[MetadataResponseTopic] = []
        for topic in found:
            if isinstance(topic, MetadataResponseTopic):
                described = _with_operations(request, topic)
            elif _is_small(topic):
                described = self._describe(request, topic)
            else:
                images = list(topic.partitions.values())
                partitions = yield from each(images, self._describe_partition)
                described = _with_operations(request, _described(topic, partitions))
            topics.append(described)
            if not len(topics) % TOPICS_PER_STEP:
                yield None
        return self._response(context, request, topics)

    def _describe(self, request: MetadataRequest, image: TopicImage) -> MetadataResponseTopic:
        partitions = [*map(self._describe_partition, image.partitions.values())]
        return _with_operations(request, _described(image, partitions))

    def _response(
        self,
        context: RequestContext,
        request: MetadataRequest,
        topics: list[MetadataResponseTopic],
    ) -> MetadataResponse:
        return MetadataResponse(
            cluster_authorized_operations=authorized_operations.ON_CLUSTER
            if request.include_cluster_authorized_operations
            else authorized_operations.NOT_ASKED_FOR,
            brokers=[
                MetadataResponseBroker(
                    node_id=found.node_id, host=found.host, port=found.port, rack=found.rack
                )
                for found in live_brokers(
                    self._metadata.image.brokers,
                    context.connection.peer.listener_name,
                    besides=self._departures.named(),
                )
            ],
            cluster_id=self._metadata.cluster_id,
            controller_id=controller_id(self._metadata, self._config.node_id),
            topics=topics,
        )

    def _find(
        self, wanted: list[MetadataRequestTopic], refused: Mapping[str, ErrorCode]
    ) -> Iterator[TopicImage | MetadataResponseTopic]:
        topics = self._metadata.image.topics
        for topic in wanted:
            if topic.name is None:
                yield topics.by_id.get(topic.topic_id) or MetadataResponseTopic(
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic.topic_id
                )
            elif (image := topics.by_name.get(topic.name)) is not None:
                yield image
            else:
                code = refused.get(topic.name) or code_of_unknown(topic.name)
                yield MetadataResponseTopic(
                    error_code=code, name=topic.name, is_internal=topic.name in INTERNAL_TOPICS
                )

    def _describe_partition(self, partition: PartitionImage) -> MetadataResponsePartition:
        has_leader = partition.leader != NO_LEADER
        return MetadataResponsePartition(
            error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
            partition_index=partition.partition,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=list(partition.replicas),
            isr_nodes=list(partition.isr),
            offline_replicas=offline_replicas(self._metadata.image.brokers, partition),
        )


def _is_small(image: TopicImage) -> bool:
    return len(image.partitions) <= ITEMS_PER_STEP


def _with_operations(
    request: MetadataRequest, topic: MetadataResponseTopic
) -> MetadataResponseTopic:
    if request.include_topic_authorized_operations and topic.name is not None:
        topic.topic_authorized_operations = authorized_operations.ON_TOPIC
    return topic


def _described(
    image: TopicImage, partitions: list[MetadataResponsePartition]
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=image.name,
        topic_id=image.topic_id,
        is_internal=image.name in INTERNAL_TOPICS,
        partitions=partitions,
    )


def _name_or_id(topic: MetadataRequestTopic) -> Hashable:
    if topic.topic_id == ZERO_UUID:
        return topic.name
    return topic.name, topic.topic_id


def _is_by_id(topic: MetadataRequestTopic) -> bool:
    return topic.name is None or topic.topic_id != ZERO_UUID


def _refused(topic: MetadataRequestTopic) -> MetadataResponseTopic:
    """Refuse a topic that is named by its id before v12, as Kafka does for each topic."""
    return MetadataResponseTopic(
        error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id
    )
