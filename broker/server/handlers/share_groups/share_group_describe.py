"""ShareGroupDescribe (key 77), version 1: epochs and members of share groups (KIP-932)."""

from broker.coordinator.group.shard import GroupShard
from broker.server.coordinators.groups import Groups
from broker.server.handlers.described_groups import described_groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


class ShareGroupDescribe:
    """Asks each group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: ShareGroupDescribeRequest) -> Steps[Answer]:
        """Describe each group once, however often it is named."""
        groups = yield from described_groups(
            self._groups, context, request, GroupShard.describe_share_group, DescribedGroup
        )
        return ShareGroupDescribeResponse(groups=groups)
