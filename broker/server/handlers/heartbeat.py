"""Heartbeat (key 12), versions 0-4: stay a member, and learn of a rebalance."""

from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.server.broker import Broker
from broker.server.network.dispatch import Answer, RequestContext


def handle_heartbeat(broker: Broker, context: RequestContext, request: HeartbeatRequest) -> Answer:
    """Put the request to the group's shard."""
    return broker.groups.answer(
        context,
        request.group_id,
        lambda shard, token, who, now: shard.heartbeat(token, who, request, now),
    )
