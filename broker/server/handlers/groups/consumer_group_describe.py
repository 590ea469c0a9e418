"""ConsumerGroupDescribe (key 69), versions 0-1: epochs and members of consumer groups (KIP-848)."""

from functools import partial

from broker.errors import KafkaError
from broker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from broker.server.cluster import authorized_operations
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, each, happened


class ConsumerGroupDescribe:
    """Asks each group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(
        self, context: RequestContext, request: ConsumerGroupDescribeRequest
    ) -> Steps[Answer]:
        """Describe each group from its own shard, once, however often it is named."""
        questions = yield from each(dict.fromkeys(request.group_ids), partial(self._ask, context))
        groups: list[DescribedGroup] = []
        for question in questions:
            group: DescribedGroup = yield question
            if request.include_authorized_operations:
                group.authorized_operations = authorized_operations.ON_GROUP
            groups.append(group)
        return ConsumerGroupDescribeResponse(groups=groups)

    def _ask(self, context: RequestContext, group_id: str) -> Later:
        try:
            return self._groups.ask(
                context,
                group_id,
                lambda shard, token, who, now: shard.describe_consumer_group(
                    token, who, group_id, now
                ),
            )
        except KafkaError as error:
            return happened(DescribedGroup(group_id=group_id, error_code=error.code))
