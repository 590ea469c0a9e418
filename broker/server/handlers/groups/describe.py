"""The descriptions of groups, each by the shard of its group, and the list of all groups.

DescribeGroups (key 15), versions 0-6: state and members of classic groups. ConsumerGroupDescribe
(key 69), versions 0-1 (KIP-848), ShareGroupDescribe (key 77), version 1 (KIP-932), and
StreamsGroupDescribe (key 89), version 0 (KIP-1071): epochs and members of the other types.

ListGroups (key 16), versions 0-5: v4 filters by state, v5 by type. A filter may have any names; the
shards get only the known ones. There may be very many groups, so the answer is made in steps.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from broker.coordinator.classic_group.classic_group import GroupState
from broker.coordinator.consumer_group.administration import CONSUMER_GROUP_TYPE
from broker.coordinator.consumer_group.consumer_group import ConsumerGroupState
from broker.coordinator.group.describe import CLASSIC_GROUP_TYPE, listed_group
from broker.coordinator.group.shard import GroupShard
from broker.coordinator.output import Instant, Output, ShardContext
from broker.server.cluster import authorized_operations
from broker.server.cluster.request_entries import distinct
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.shards import AskedShard
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, all_values, each, happened
from common.kafka.errors import KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages import (
    consumer_group_describe,
    describe_groups,
    share_group_describe,
    streams_group_describe,
)
from common.kafka.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


class GroupType(NamedTuple):
    """The groups of one type."""

    describe: Callable[[GroupShard, AskedShard, ShardContext, str, Instant], Output]
    """The method of the shard that describes one."""
    refused: Callable[..., Any]
    """Makes the answer about a group whose shard is not here."""
    response: Callable[..., Message]
    request_field: str = "group_ids"


TYPES: Final[dict[ApiKey, GroupType]] = {
    ApiKey.DESCRIBE_GROUPS: GroupType(
        GroupShard.describe_group,
        describe_groups.DescribedGroup,
        describe_groups.DescribeGroupsResponse,
        request_field="groups",
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: GroupType(
        GroupShard.describe_consumer_group,
        consumer_group_describe.DescribedGroup,
        consumer_group_describe.ConsumerGroupDescribeResponse,
    ),
    ApiKey.SHARE_GROUP_DESCRIBE: GroupType(
        GroupShard.describe_share_group,
        share_group_describe.DescribedGroup,
        share_group_describe.ShareGroupDescribeResponse,
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: GroupType(
        GroupShard.describe_streams_group,
        streams_group_describe.DescribedGroup,
        streams_group_describe.StreamsGroupDescribeResponse,
    ),
}


class DescribeGroups:
    """Asks the shard of each group, for one of these APIs."""

    def __init__(self, groups: Groups, api_key: ApiKey) -> None:
        self._groups = groups
        self._type = TYPES[api_key]

    def handle(self, context: RequestContext, request: Any) -> Steps[Answer]:
        """Describe each group once, however often it is named."""
        group_ids = dict.fromkeys(getattr(request, self._type.request_field))
        questions = yield from each(group_ids, lambda group_id: self._ask(context, group_id))
        described: list[Any] = yield from all_values(questions)
        if request.include_authorized_operations:
            for group in described:
                group.authorized_operations = authorized_operations.ON_GROUP
        return self._type.response(groups=described)

    def _ask(self, context: RequestContext, group_id: str) -> Later:
        try:
            return self._groups.ask(
                context,
                group_id,
                lambda shard, asked, who, now: self._type.describe(
                    shard, asked, who, group_id, now
                ),
            )
        except KafkaError as error:
            return happened(self._type.refused(group_id=group_id, error_code=error.code))


STATES = frozenset(state.value.lower() for state in (*GroupState, *ConsumerGroupState))
TYPE_NAMES = frozenset({CLASSIC_GROUP_TYPE, CONSUMER_GROUP_TYPE})
GROUPS_PER_STEP = 500


class ListGroups:
    """Asks every shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: ListGroupsRequest) -> Steps[Answer]:
        """Gather the groups of all shards."""
        states = _shortened(request.states_filter, STATES)
        types = _shortened(request.types_filter, TYPE_NAMES)
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
