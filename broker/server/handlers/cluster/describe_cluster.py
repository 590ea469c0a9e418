"""DescribeCluster (key 60), versions 0-2: the brokers and the cluster id (KIP-700).

v2 can include fenced brokers (KIP-1073).
"""

from broker.config.broker_config import BrokerConfig
from broker.server.cluster import authorized_operations
from broker.server.cluster.cluster_view import address_of, controller_id
from broker.server.cluster.departures import Departures
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.network.dispatch import RequestContext
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


class DescribeCluster:
    """Describes the brokers to the clients of one listener."""

    def __init__(
        self, config: BrokerConfig, metadata: ClusterMetadata, departures: Departures
    ) -> None:
        self._departures = departures
        self._config = config
        self._metadata = metadata

    def handle(
        self, context: RequestContext, request: DescribeClusterRequest
    ) -> DescribeClusterResponse:
        """Describe the brokers that Metadata names, and all fenced ones if they are asked for."""
        if request.endpoint_type == CONTROLLERS:
            raise KafkaError(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                "The request was sent to an endpoint of type BROKER",
            )
        if request.endpoint_type != BROKERS:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint {request.endpoint_type}"
            )
        named = self._departures.named()
        listener_name = context.connection.peer.listener_name
        found = [
            (image.is_fenced, address)
            for broker_id, image in sorted(self._metadata.image.brokers.items())
            if (request.include_fenced_brokers or not image.is_fenced or broker_id in named)
            and (address := address_of(image, listener_name)) is not None
        ]
        return DescribeClusterResponse(
            endpoint_type=request.endpoint_type,
            cluster_authorized_operations=authorized_operations.ON_CLUSTER
            if request.include_cluster_authorized_operations
            else authorized_operations.NOT_ASKED_FOR,
            cluster_id=self._metadata.cluster_id,
            controller_id=controller_id(self._metadata, self._config.node_id),
            brokers=[
                DescribeClusterBroker(
                    broker_id=address.node_id,
                    host=address.host,
                    port=address.port,
                    rack=address.rack,
                    is_fenced=is_fenced,
                )
                for is_fenced, address in found
            ],
        )
