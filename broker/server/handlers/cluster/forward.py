"""Forwards the requests that only the controller decides, and returns its answer.

The answer to a change of topics is sent when this broker has applied the change too, so that the
client's next request to this broker finds it.
"""

from collections.abc import Callable

from broker.server.cluster.metadata_quorum import AskController, ClusterMetadata, MetadataWaits
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps
from broker.server.replication.partitions import Partitions
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from common.kafka.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from common.kafka.protocol.messages.delete_topics import DeleteTopicsResponse

DEFAULT_TIMEOUT_MS = 30_000
MAX_TIMEOUT_MS = 300_000
VISIBLE_TIMEOUT_MS = 5_000


class Forward:
    """Forwards requests to the active controller."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        ask: AskController,
        waits: MetadataWaits,
        partitions: Partitions,
    ) -> None:
        self._metadata = metadata
        self._ask = ask
        self._waits = waits
        self._partitions = partitions

    def handle(self, context: RequestContext, request: Message) -> Steps[Answer]:
        """Ask the controller, in the version the client speaks."""
        wanted_ms = getattr(request, "timeout_ms", DEFAULT_TIMEOUT_MS)
        timeout_ms = wanted_ms if 0 < wanted_ms <= MAX_TIMEOUT_MS else DEFAULT_TIMEOUT_MS
        answered = Later()
        self._ask(request, context.api_version, answered.done, timeout_ms=timeout_ms)
        response: Message = yield answered
        yield self._waits.until(self._visible(request, response), timeout_ms=VISIBLE_TIMEOUT_MS)
        return response

    def _visible(self, request: Message, response: Message) -> Callable[[], bool]:
        """Return a condition that is True when this node has applied the answered change."""
        match request, response:
            case (CreateTopicsRequest(validate_only=False), CreateTopicsResponse()):
                names = [
                    topic.name for topic in response.topics if topic.error_code == ErrorCode.NONE
                ]
                return lambda: all(map(self._is_here, names))
            case (_, DeleteTopicsResponse()):
                deleted = [
                    topic for topic in response.responses if topic.error_code == ErrorCode.NONE
                ]
                ids = [topic.topic_id for topic in deleted if topic.topic_id != bytes(16)]
                return lambda: (
                    not any(topic_id in self._metadata.image.topics.by_id for topic_id in ids)
                )
            case (CreatePartitionsRequest(validate_only=False), CreatePartitionsResponse()):
                refused = {result.name for result in response.results if result.error_code}
                counts = {topic.name: topic.count for topic in request.topics}
                return lambda: all(
                    name in refused or self._has(name, count) for name, count in counts.items()
                )
            case _:
                return lambda: True

    def _is_here(self, topic: str) -> bool:
        by_name = self._metadata.image.topics.by_name
        return topic in by_name and self._partitions.is_complete(topic)

    def _has(self, topic: str, partition_count: int) -> bool:
        """Return whether a topic has this many partitions; True if it was deleted meanwhile."""
        image = self._metadata.image.topics.by_name.get(topic)
        return image is None or (
            len(image.partitions) >= partition_count and self._partitions.is_complete(topic)
        )
