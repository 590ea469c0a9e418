"""FindCoordinator (key 10), versions 0-6: the broker that owns a group, a transactional
id, or the state of a share-partition.

v1 adds the key type. v4 asks for many keys at once, each answered with its own error (KIP-699). v6
adds share-partitions (KIP-932), for other brokers.
"""

from functools import partial

from broker.coordinator.partitioning import partition_for
from broker.metadata.topic_names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from broker.server.cluster.auto_topics import AutoTopics
from broker.server.cluster.cluster_view import find_live
from broker.server.cluster.departures import Departures
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.share_states import coordinator_key, parse_coordinator_key
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP, TRANSACTION, SHARE = range(3)
TOPICS = {
    GROUP: CONSUMER_OFFSETS,
    TRANSACTION: TRANSACTION_STATE,
    SHARE: SHARE_GROUP_STATE,
}
FIRST_VERSION_WITH_MANY_KEYS = 4
FIRST_VERSION_WITH_SHARES = 6


class FindCoordinator:
    """Finds the broker that owns a key."""

    def __init__(
        self, metadata: ClusterMetadata, auto_topics: AutoTopics, departures: Departures
    ) -> None:
        self._metadata = metadata
        self._auto_topics = auto_topics
        self._departures = departures

    def handle(self, context: RequestContext, request: FindCoordinatorRequest) -> Steps[Answer]:
        """Answer the coordinator of each key; the first request creates their topic."""
        topic = _topic_of(context, request.key_type)
        if topic is not None:
            yield from self._auto_topics.ensure([topic])
            yield self._departures.when_known(self._leaders_of(topic))
        if context.api_version >= FIRST_VERSION_WITH_MANY_KEYS:
            find = partial(self._find, context, request.key_type)
            return FindCoordinatorResponse(coordinators=[*map(find, request.coordinator_keys)])
        found = self._find(context, request.key_type, request.key)
        return FindCoordinatorResponse(
            error_code=found.error_code,
            error_message=found.error_message,
            node_id=found.node_id,
            host=found.host,
            port=found.port,
        )

    def _leaders_of(self, topic: str) -> set[int]:
        """Return the possible coordinators while a broker is in doubt, otherwise an empty set."""
        image = self._metadata.image.topics.by_name.get(topic)
        if image is None or not self._departures.has_doubts:
            return set()
        return {partition.leader for partition in image.partitions.values()}

    def _find(self, context: RequestContext, key_type: int, key: str) -> Coordinator:
        name = _topic_of(context, key_type)
        if name is None:
            return _none(key, ErrorCode.INVALID_REQUEST, f"Unknown coordinator key type {key_type}")
        hashed = key
        if key_type == SHARE:
            try:
                hashed = coordinator_key(parse_coordinator_key(key))
            except ValueError as error:
                return _none(key, ErrorCode.INVALID_REQUEST, str(error))
        topic = self._metadata.image.topics.by_name.get(name)
        address = None
        if topic is not None:
            leader = topic.partitions[partition_for(hashed, len(topic.partitions))].leader
            address = find_live(
                self._metadata.image.brokers, leader, context.connection.peer.listener_name
            )
        if address is None:
            return _none(
                key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available."
            )
        return Coordinator(
            key=key,
            node_id=address.node_id,
            host=address.host,
            port=address.port,
            error_code=ErrorCode.NONE,
            error_message="",
        )


def _topic_of(context: RequestContext, key_type: int) -> str | None:
    """Return the internal topic of a kind of key, None if the version does not have the kind."""
    if key_type == SHARE and context.api_version < FIRST_VERSION_WITH_SHARES:
        return None
    return TOPICS.get(key_type)


def _none(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
    )
