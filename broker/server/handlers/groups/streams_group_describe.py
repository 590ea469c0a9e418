"""StreamsGroupDescribe (key 89), version 0: topology and members of streams groups (KIP-1071)."""

from broker.coordinator.group.shard import GroupShard
from broker.server.coordinators.groups import Groups
from broker.server.handlers.described_groups import described_groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)


class StreamsGroupDescribe:
    """Asks each group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(
        self, context: RequestContext, request: StreamsGroupDescribeRequest
    ) -> Steps[Answer]:
        """Describe each group once, however often it is named."""
        groups = yield from described_groups(
            self._groups, context, request, GroupShard.describe_streams_group, DescribedGroup
        )
        return StreamsGroupDescribeResponse(groups=groups)
