"""ListGroups (key 16), versions 0-5: every group; v4 filters by state, v5 by type."""

from broker.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from broker.server.broker import Broker
from broker.server.network.dispatch import RequestContext


def handle_list_groups(
    broker: Broker, context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse:
    """Gather the groups of all shards."""
    listed: list[ListedGroup] = []
    for answer in broker.groups.ask_every_shard(
        context,
        lambda shard, token, who, _: shard.list_groups(
            token, who, request.states_filter, request.types_filter
        ),
    ):
        assert isinstance(answer, list)
        listed += answer
    return ListGroupsResponse(groups=listed)
