"""StreamsGroupDescribe (key 89), version 0: topology and members of streams groups (KIP-1071)."""

from functools import partial

from broker.errors import KafkaError
from broker.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from broker.server.cluster import authorized_operations
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, all_values, each, happened


class StreamsGroupDescribe:
    """Asks each group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(
        self, context: RequestContext, request: StreamsGroupDescribeRequest
    ) -> Steps[Answer]:
        """Describe each group once, however often it is named."""
        questions = yield from each(dict.fromkeys(request.group_ids), partial(self._ask, context))
        groups: list[DescribedGroup] = yield from all_values(questions)
        if request.include_authorized_operations:
            for group in groups:
                group.authorized_operations = authorized_operations.ON_GROUP
        return StreamsGroupDescribeResponse(groups=groups)

    def _ask(self, context: RequestContext, group_id: str) -> Later:
        try:
            return self._groups.ask(
                context,
                group_id,
                lambda shard, token, who, now: shard.describe_streams_group(
                    token, who, group_id, now
                ),
            )
        except KafkaError as error:
            return happened(DescribedGroup(group_id=group_id, error_code=error.code))
