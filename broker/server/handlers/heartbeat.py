"""Heartbeat (key 12), versions 0-4: stay a member, and learn of a rebalance."""

from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext


class Heartbeat:
    """Asks the group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: HeartbeatRequest) -> Answer:
        """Put the request to the group's shard."""
        return self._groups.answer(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.heartbeat(token, who, request, now),
        )
