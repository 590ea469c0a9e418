"""ListConfigResources (key 74), versions 0-1: resources with settings (KIP-714, KIP-1142).

Version 0 asks for client metrics subscriptions only.
"""

from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from broker.server.network.dispatch import RequestContext
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

FIRST_VERSION_WITH_TYPES = 1
KNOWN_TYPES = {TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP}


class ListConfigResources:
    """Lists the resources that have settings in the metadata."""

    def __init__(self, metadata: ClusterMetadata) -> None:
        self._metadata = metadata

    def handle(
        self, context: RequestContext, request: ListConfigResourcesRequest
    ) -> ListConfigResourcesResponse:
        """List topics and brokers, when they are asked for; an empty list of types means all."""
        if context.api_version < FIRST_VERSION_WITH_TYPES:
            request.resource_types = [CLIENT_METRICS]
        if unknown := set(request.resource_types) - KNOWN_TYPES:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, f"Unexpected resource types {sorted(unknown)}"
            )
        wanted = set(request.resource_types) or KNOWN_TYPES
        resources: list[ConfigResource] = []
        if TOPIC in wanted:
            resources += [
                ConfigResource(resource_name=name, resource_type=TOPIC)
                for name in self._metadata.image.topics.by_name
            ]
        if BROKER in wanted:
            resources += [
                ConfigResource(resource_name=str(node_id), resource_type=BROKER)
                for node_id in sorted(self._metadata.image.brokers)
            ]
        resources += [
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type, name in self._metadata.image.configs
            if resource_type in wanted & {CLIENT_METRICS, GROUP}
        ]
        return ListConfigResourcesResponse(config_resources=resources)
