"""ListGroups (key 16), versions 0-5: every group; v4 filters by state, v5 by type."""

from broker.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from broker.server.coordinators.asked import when_answered
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext


class ListGroups:
    """Asks every shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: ListGroupsRequest) -> Answer:
        """Gather the groups of all shards."""
        questions = self._groups.ask_every_shard(
            context,
            lambda shard, token, who, _: shard.list_groups(
                token, who, request.states_filter, request.types_filter
            ),
        )

        def make() -> ListGroupsResponse:
            listed: list[ListedGroup] = []
            for asked in questions:
                assert isinstance(asked.response, list), asked.response
                listed += asked.response
            return ListGroupsResponse(groups=listed)

        return when_answered(context, questions, make)
