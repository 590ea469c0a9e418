"""ListGroups (key 16), versions 0-5: every group; v4 filters by state, v5 by type.

A filter may have any names; the shards get only the known ones. There may be very many groups, so
the answer is made in steps.
"""

from broker.coordinator.classic_group.classic_group import GroupState
from broker.coordinator.consumer_group.administration import CONSUMER_GROUP_TYPE
from broker.coordinator.consumer_group.consumer_group import ConsumerGroupState
from broker.coordinator.group.describe import CLASSIC_GROUP_TYPE, listed_group
from broker.server.cluster.repeated import distinct
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps, each
from common.kafka.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

STATES = frozenset(state.value.lower() for state in (*GroupState, *ConsumerGroupState))
TYPES = frozenset({CLASSIC_GROUP_TYPE, CONSUMER_GROUP_TYPE})
GROUPS_PER_STEP = 500


class ListGroups:
    """Asks every shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: ListGroupsRequest) -> Steps[Answer]:
        """Gather the groups of all shards."""
        states = _shortened(request.states_filter, STATES)
        types = _shortened(request.types_filter, TYPES)
        questions = yield from self._groups.ask_every_shard(
            context,
            lambda shard, token, who, _: shard.list_groups(token, who, states, types),
        )
        listed: list[ListedGroup] = []
        for question in questions:
            groups = yield question
            listed += yield from each(groups, listed_group, GROUPS_PER_STEP)
            yield None
        return ListGroupsResponse(groups=listed)


def _shortened(wanted: list[str], known: frozenset[str]) -> list[str]:
    """Keep each known name once, and one unknown name, so that the filter does not become empty."""

    def name(said: str) -> str:
        lowered = said.strip().lower()
        return lowered if lowered in known else ""

    return distinct(wanted, name)
