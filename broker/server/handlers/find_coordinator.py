"""FindCoordinator (key 10), versions 0-6: which broker owns a group.

v1 adds the key type. v4 asks for many keys at once, each answered with its own error (KIP-699).
"""

from broker.errors import ErrorCode
from broker.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from broker.server.broker import Broker
from broker.server.dispatch import RequestContext

GROUP, TRANSACTION, SHARE = range(3)
FIRST_VERSION_WITH_MANY_KEYS = 4


def handle_find_coordinator(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    """Name the coordinator of each key: on one node, this node."""
    if context.api_version >= FIRST_VERSION_WITH_MANY_KEYS:
        return FindCoordinatorResponse(
            coordinators=[
                _find(broker, context, request.key_type, key) for key in request.coordinator_keys
            ]
        )
    found = _find(broker, context, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(broker: Broker, context: RequestContext, key_type: int, key: str) -> Coordinator:
    if key_type != GROUP:
        known = key_type in {TRANSACTION, SHARE}
        return Coordinator(
            key=key,
            node_id=-1,
            host="",
            port=-1,
            error_code=ErrorCode.UNSUPPORTED_VERSION if known else ErrorCode.INVALID_REQUEST,
            error_message="Transactions and share groups are not supported by this broker yet"
            if known
            else f"Unknown coordinator key type {key_type}",
        )
    broker.groups.number_of(key)
    host, port = broker.advertised(context.connection.peer.listener_name)
    return Coordinator(
        key=key,
        node_id=broker.config.node_id,
        host=host,
        port=port,
        error_code=ErrorCode.NONE,
        error_message="",
    )
