"""The descriptions of groups of one type, each by the shard of the group."""

from collections.abc import Callable
from typing import Any, Protocol

from broker.coordinator.group.shard import GroupShard
from broker.coordinator.output import Instant, Output, ShardContext
from broker.server.cluster import authorized_operations
from broker.server.coordinators.asked import AskedShard
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import RequestContext
from broker.server.network.later import Later, Steps, all_values, each, happened
from common.kafka.errors import KafkaError


class DescribeRequest(Protocol):
    """The fields that the requests have in common."""

    group_ids: list[str]
    include_authorized_operations: bool


def described_groups(
    groups: Groups,
    context: RequestContext,
    request: DescribeRequest,
    question: Callable[[GroupShard, AskedShard, ShardContext, str, Instant], Output],
    answer: Callable[..., Any],
) -> Steps[list[Any]]:
    """Put the question to the shard of each group, once, however often the group is named.

    `answer` makes the answer about a group whose shard is not here.
    """

    def ask(group_id: str) -> Later:
        def ask_shard(
            shard: GroupShard, asked: AskedShard, who: ShardContext, now: Instant
        ) -> Output:
            return question(shard, asked, who, group_id, now)

        try:
            return groups.ask(context, group_id, ask_shard)
        except KafkaError as error:
            return happened(answer(group_id=group_id, error_code=error.code))

    questions = yield from each(dict.fromkeys(request.group_ids), ask)
    described: list[Any] = yield from all_values(questions)
    if request.include_authorized_operations:
        for group in described:
            group.authorized_operations = authorized_operations.ON_GROUP
    return described
