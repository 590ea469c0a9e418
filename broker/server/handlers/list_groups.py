"""ListGroups (key 16), versions 0-5: every group; v4 filters by state, v5 by type.

A filter may name anything, and as much as it likes; every shard is told only what can be. There may
be very many groups, so the answer is always a walk, and is encoded in pieces.
"""

from broker.coordinator.consumer_group.administration import CONSUMER_GROUP_TYPE
from broker.coordinator.consumer_group.consumer_group import ConsumerGroupState
from broker.coordinator.group.classic_group import GroupState
from broker.coordinator.group.describe import CLASSIC_GROUP_TYPE, listed_group
from broker.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from broker.server.coordinators.asked import all_answered
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import Steps, distinct, each

STATES = frozenset(state.value.lower() for state in (*GroupState, *ConsumerGroupState))
TYPES = frozenset({CLASSIC_GROUP_TYPE, CONSUMER_GROUP_TYPE})
GROUPS_PER_STEP = 500


class ListGroups:
    """Asks every shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: ListGroupsRequest) -> AnswerWalk:
        """Gather the groups of all shards."""
        states = yield from _shortened(request.states_filter, STATES)
        types = yield from _shortened(request.types_filter, TYPES)
        questions = yield from self._groups.ask_every_shard(
            context,
            lambda shard, token, who, _: shard.list_groups(token, who, states, types),
        )
        yield from all_answered(questions)
        listed: list[ListedGroup] = []
        for asked in questions:
            assert isinstance(asked.response, list), asked.response
            listed += yield from each(asked.response, listed_group, per_step=GROUPS_PER_STEP)
            yield
        return ListGroupsResponse(groups=listed)


def _shortened(wanted: list[str], known: frozenset[str]) -> Steps[list[str]]:
    """Keep each known name once, and one of all others: a filter that no group passes stays one."""

    def name(said: str) -> str:
        lowered = said.strip().lower()
        return lowered if lowered in known else ""

    return (yield from distinct(wanted, name))
