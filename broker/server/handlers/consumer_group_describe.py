"""ConsumerGroupDescribe (key 69), versions 0-1: epochs and members of consumer groups (KIP-848)."""

from broker.errors import KafkaError
from broker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from broker.server.cluster import authorized_operations
from broker.server.coordinators.asked import AskedShard, answered, each_answered
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import distinct, each


class ConsumerGroupDescribe:
    """Asks each group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: ConsumerGroupDescribeRequest) -> AnswerWalk:
        """Describe each group from its own shard, once, however often it is named."""
        group_ids = yield from distinct(request.group_ids, lambda group_id: group_id)
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
                context, questions, take, lambda taken: ConsumerGroupDescribeResponse(groups=taken)
            )
        )

    def _ask(self, context: RequestContext, group_id: str) -> AskedShard:
        try:
            return self._groups.ask(
                context,
                group_id,
                lambda shard, token, who, now: shard.describe_consumer_group(
                    token, who, group_id, now
                ),
            )
        except KafkaError as error:
            return answered(context, DescribedGroup(group_id=group_id, error_code=error.code))
