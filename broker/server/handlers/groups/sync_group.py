"""SyncGroup (key 14), versions 0-5: hand in the leader's assignment, or wait for one's own."""

from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.sync_group import SyncGroupRequest


class SyncGroup:
    """Asks the group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: SyncGroupRequest) -> Answer | Steps[Answer]:
        """Put the request to the group's shard."""
        return self._groups.answer(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.sync_group(token, who, request, now),
        )
