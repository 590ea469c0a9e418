"""Heartbeat (key 12), versions 0-4: stay a member, and learn of a rebalance."""

from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps


class Heartbeat:
    """Asks the group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: HeartbeatRequest) -> Answer | Steps[Answer]:
        """Put the request to the group's shard.

        While that is loaded, after its leader before has died, nothing is known of the member and
        all is well, as in Kafka: there are clients to which any other answer is the end.
        """
        try:
            return self._groups.answer(
                context,
                request.group_id,
                lambda shard, token, who, now: shard.heartbeat(token, who, request, now),
            )
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return HeartbeatResponse(error_code=ErrorCode.NONE)
            raise
