"""SyncGroup (key 14), versions 0-5: hand in the leader's assignment, or wait for one's own."""

from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext

MAX_ASSIGNMENTS = 10_000
"""The members of a group so large would not fit into its record."""


class SyncGroup:
    """Asks the group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: SyncGroupRequest) -> Answer:
        """Put the request to the group's shard."""
        if len(request.assignments) > MAX_ASSIGNMENTS:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR, "A leader assigns to too many members."
            )
        return self._groups.answer(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.sync_group(token, who, request, now),
        )
