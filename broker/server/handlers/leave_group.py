"""LeaveGroup (key 13), versions 0-5: leave at once; v3 names many members (KIP-345)."""

from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.server.broker import Broker
from broker.server.network.dispatch import Answer, RequestContext


def handle_leave_group(
    broker: Broker, context: RequestContext, request: LeaveGroupRequest
) -> Answer:
    """Put the request to the group's shard."""
    return broker.groups.answer(
        context,
        request.group_id,
        lambda shard, token, who, now: shard.leave_group(token, who, request, now),
    )
