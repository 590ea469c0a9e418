"""ShareGroupHeartbeat (key 76), version 1: be a member of a share group (KIP-932)."""

from collections.abc import Generator

from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.server.cluster.auto_topics import AutoTopics
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

JOIN_EPOCH = 0


class ShareGroupHeartbeat:
    """Asks the group's shard."""

    def __init__(self, groups: Groups, auto_topics: AutoTopics) -> None:
        self._groups = groups
        self._auto_topics = auto_topics

    def handle(
        self, context: RequestContext, request: ShareGroupHeartbeatRequest
    ) -> Answer | Steps[Answer]:
        """Put the request to the group's shard.

        The first member of the cluster has the topic of the share coordinator created: without it
        no partition can be assigned.
        """
        if request.member_epoch == JOIN_EPOCH and self._groups.lacks_share_coordinator:
            return self._create_topic_and_ask(context, request)
        return self._ask(context, request)

    def _create_topic_and_ask(
        self, context: RequestContext, request: ShareGroupHeartbeatRequest
    ) -> Steps[Answer]:
        yield from self._auto_topics.ensure([SHARE_GROUP_STATE])
        answer = self._ask(context, request)
        return (yield from answer) if isinstance(answer, Generator) else answer

    def _ask(
        self, context: RequestContext, request: ShareGroupHeartbeatRequest
    ) -> Answer | Steps[Answer]:
        return self._groups.answer(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.share_group_heartbeat(token, who, request, now),
        )
