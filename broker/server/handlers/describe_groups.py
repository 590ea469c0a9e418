"""DescribeGroups (key 15), versions 0-6: state and members of classic groups."""

from broker.errors import KafkaError
from broker.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from broker.server.cluster import authorized_operations
from broker.server.coordinators.asked import AskedShard, answered, each_answered
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import distinct, each


class DescribeGroups:
    """Asks each group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: DescribeGroupsRequest) -> AnswerWalk:
        """Describe each group from its own shard, once, however often it is named."""
        group_ids = yield from distinct(request.groups, lambda group_id: group_id)
        questions = yield from each(
            group_ids, lambda group_id: self._ask(context, group_id), per_step=4
        )

        def take(asked: AskedShard) -> DescribedGroup:
            assert isinstance(asked.response, DescribedGroup), asked.response
            if request.include_authorized_operations:
                asked.response.authorized_operations = authorized_operations.ON_GROUP
            return asked.response

        return (
            yield from each_answered(
                context, questions, take, lambda taken: DescribeGroupsResponse(groups=taken)
            )
        )

    def _ask(self, context: RequestContext, group_id: str) -> AskedShard:
        try:
            return self._groups.ask(
                context,
                group_id,
                lambda shard, token, who, now: shard.describe_group(token, who, group_id, now),
            )
        except KafkaError as error:
            return answered(context, DescribedGroup(group_id=group_id, error_code=error.code))
