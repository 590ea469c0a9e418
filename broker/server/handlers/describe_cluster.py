"""DescribeCluster (key 60), versions 0-2: the brokers and the cluster id (KIP-700)."""

from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from broker.server import authorized_operations
from broker.server.broker import Broker
from broker.server.dispatch import RequestContext

BROKERS = 1
CONTROLLERS = 2


def handle_describe_cluster(
    broker: Broker, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Describe the one broker there is."""
    if request.endpoint_type == CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE, "The request was sent to an endpoint of type BROKER"
        )
    if request.endpoint_type != BROKERS:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint {request.endpoint_type}"
        )
    host, port = broker.advertised(context.connection.peer.listener_name)
    return DescribeClusterResponse(
        endpoint_type=request.endpoint_type,
        cluster_authorized_operations=authorized_operations.ON_CLUSTER
        if request.include_cluster_authorized_operations
        else authorized_operations.NOT_ASKED_FOR,
        cluster_id=broker.cluster_id,
        controller_id=broker.config.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.config.node_id, host=host, port=port, rack=broker.config.rack
            )
        ],
    )
