"""LeaveGroup (key 13), versions 0-5: leave at once; v3 names many members (KIP-345)."""

from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext


class LeaveGroup:
    """Asks the group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: LeaveGroupRequest) -> Answer:
        """Put the request to the group's shard."""
        return self._groups.answer(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.leave_group(token, who, request, now),
        )
