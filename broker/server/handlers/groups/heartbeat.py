"""Heartbeat (key 12), versions 0-4: stay a member, and learn of a rebalance."""

from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


class Heartbeat:
    """Asks the group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: HeartbeatRequest) -> Answer | Steps[Answer]:
        """Put the request to the group's shard.

        While the shard is loading, after a change of its leader, the member is unknown, and the
        answer has no error, as in Kafka: some clients do not survive any other answer.
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
