"""ConsumerGroupHeartbeat (key 68), versions 0-1: be a member of a consumer group (KIP-848).

v1 lets the client choose its member id (KIP-1082) and subscribe to a pattern. A heartbeat never
waits: its answer has the next step of the member, and later heartbeats get the others.
"""

from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


class ConsumerGroupHeartbeat:
    """Asks the group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest
    ) -> Answer | Steps[Answer]:
        """Put the request to the group's shard."""
        return self._groups.answer(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.consumer_group_heartbeat(token, who, request, now),
        )
