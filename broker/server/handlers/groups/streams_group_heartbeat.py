"""StreamsGroupHeartbeat (key 88), version 0: be a member of a streams group (KIP-1071).

If internal topics of the group are missing, the broker creates them in the name of the member: it
needs CREATE on the cluster or on each of the topics.
"""

from collections.abc import Iterable

from broker.coordinator.streams_group.configured_topology import InternalTopic, StatusCode
from broker.coordinator.streams_group.heartbeat import HeartbeatAnswer
from broker.security.acls import AclOperation
from broker.server.authorization.access import CLUSTER, TOPIC
from broker.server.authorization.guard import Guard
from broker.server.cluster.internal_topics import InternalTopics
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

TOLD_ERRORS = 3
INTERVALS_OF_ERRORS = 2


class StreamsGroupHeartbeat:
    """Asks the group's shard, and has internal topics created."""

    def __init__(
        self, groups: Groups, internal_topics: InternalTopics, guard: Guard | None
    ) -> None:
        self._groups = groups
        self._internal_topics = internal_topics
        self._guard = guard

    def handle(
        self, context: RequestContext, request: StreamsGroupHeartbeatRequest
    ) -> Steps[Answer]:
        """Put the request to the group's shard."""
        answer: HeartbeatAnswer = yield self._groups.ask(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.streams_group_heartbeat(token, who, request, now),
        )
        if answer.missing_topics:
            self._create(context, answer)
        return answer.response

    def _create(self, context: RequestContext, answer: HeartbeatAnswer) -> None:
        """Have internal topics created, and tell the member what prevents it."""
        topics, response = answer.missing_topics, answer.response
        denied = self._denied(context, topics)
        if denied:
            add_detail(response, f"; Unauthorized to CREATE on topics {', '.join(denied)}.")
            return
        self._internal_topics.create(topics, INTERVALS_OF_ERRORS * response.heartbeat_interval_ms)
        errors = self._internal_topics.errors_of(topic.name for topic in topics)
        if errors:
            told = [f"{name} ({text})" for name, text in list(errors.items())[:TOLD_ERRORS]]
            rest = len(errors) - len(told)
            more = f" and {rest} more" if rest else ""
            add_detail(response, f"; Creation failed: {', '.join(told)}{more}.")

    def _denied(self, context: RequestContext, topics: Iterable[InternalTopic]) -> list[str]:
        """Return the names of the topics that the client may not create."""
        if self._guard is None:
            return []
        access = self._guard.access(context.connection, "STREAMS_GROUP_HEARTBEAT")
        if access.can_see(AclOperation.CREATE, CLUSTER):
            return []
        return [
            topic.name for topic in topics if not access.may(AclOperation.CREATE, TOPIC, topic.name)
        ]


def add_detail(response: StreamsGroupHeartbeatResponse, detail: str) -> None:
    """Append to the status of missing topics."""
    response.status = [
        Status(status_code=each.status_code, status_detail=each.status_detail + detail)
        if each.status_code == StatusCode.MISSING_INTERNAL_TOPICS
        else each
        for each in response.status or ()
    ]
