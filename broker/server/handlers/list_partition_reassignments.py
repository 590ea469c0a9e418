"""ListPartitionReassignments (key 46), version 0: replicas on their way (KIP-455)."""

from broker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from broker.server.broker import Broker
from broker.server.dispatch import RequestContext


def handle_list_partition_reassignments(
    broker: Broker, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List none: there is no other node."""
    return ListPartitionReassignmentsResponse(error_message=None)
