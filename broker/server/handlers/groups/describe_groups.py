"""DescribeGroups (key 15), versions 0-6: state and members of classic groups."""

from functools import partial

from broker.server.cluster import authorized_operations
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, each, happened
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


class DescribeGroups:
    """Asks each group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: DescribeGroupsRequest) -> Steps[Answer]:
        """Describe each group from its own shard, once, however often it is named."""
        questions = yield from each(dict.fromkeys(request.groups), partial(self._ask, context))
        groups: list[DescribedGroup] = []
        for question in questions:
            group: DescribedGroup = yield question
            if request.include_authorized_operations:
                group.authorized_operations = authorized_operations.ON_GROUP
            groups.append(group)
        return DescribeGroupsResponse(groups=groups)

    def _ask(self, context: RequestContext, group_id: str) -> Later:
        try:
            return self._groups.ask(
                context,
                group_id,
                lambda shard, token, who, now: shard.describe_group(token, who, group_id, now),
            )
        except KafkaError as error:
            return happened(DescribedGroup(group_id=group_id, error_code=error.code))
