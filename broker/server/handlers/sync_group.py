"""SyncGroup (key 14), versions 0-5: hand in the leader's assignment, or wait for one's own."""

from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.server.broker import Broker
from broker.server.network.dispatch import Answer, RequestContext


def handle_sync_group(broker: Broker, context: RequestContext, request: SyncGroupRequest) -> Answer:
    """Put the request to the group's shard."""
    return broker.groups.answer(
        context,
        request.group_id,
        lambda shard, token, who, now: shard.sync_group(token, who, request, now),
    )
