"""ConsumerGroupHeartbeat (key 68), versions 0-1: be a member of a consumer group (KIP-848).

v1 lets the client choose its member id (KIP-1082) and subscribe to a pattern. Nobody ever waits:
what there is to do comes back in the answer, and the rest in those of later heartbeats.
"""

from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.walks import is_longer_than

MAX_TOPICS = 10_000
"""Of these a group thinks for 20 ms; who subscribes to so many does so by a pattern."""
MAX_PARTITIONS = 50_000


class ConsumerGroupHeartbeat:
    """Asks the group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Answer:
        """Put the request to the group's shard."""
        if len(request.subscribed_topic_names or ()) > MAX_TOPICS:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, "A member subscribes to too many topics."
            )
        owned = request.topic_partitions
        if owned and is_longer_than(owned, _partitions, MAX_PARTITIONS):
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "A member has too many partitions.")
        return self._groups.answer(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.consumer_group_heartbeat(token, who, request, now),
        )


def _partitions(topic: TopicPartitions) -> list[int]:
    return topic.partitions
