"""ConsumerGroupDescribe (key 69), versions 0-1: epochs and members of consumer groups (KIP-848)."""

from broker.coordinator.group.shard import GroupShard
from broker.server.coordinators.groups import Groups
from broker.server.handlers.described_groups import described_groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)


class ConsumerGroupDescribe:
    """Asks each group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(
        self, context: RequestContext, request: ConsumerGroupDescribeRequest
    ) -> Steps[Answer]:
        """Describe each group once, however often it is named."""
        groups = yield from described_groups(
            self._groups, context, request, GroupShard.describe_consumer_group, DescribedGroup
        )
        return ConsumerGroupDescribeResponse(groups=groups)
