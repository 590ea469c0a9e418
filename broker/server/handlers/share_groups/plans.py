"""The two halves of a request about a share group's offsets: the shard plans, then it is told."""

from typing import TypeVar

from broker.coordinator.group.shard import Handler
from broker.coordinator.share_group.offsets import Plan
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import RequestContext
from broker.server.network.later import Later, Steps, happened
from common.kafka.errors import KafkaError

RequestT = TypeVar("RequestT")


def ask(
    groups: Groups,
    context: RequestContext,
    planned_by: Handler[RequestT],
    group_id: str,
    request: RequestT,
) -> Later:
    """Return an event with the plan of a request; the plan has the refusal, if it is refused."""
    try:
        return groups.ask(
            context,
            group_id,
            lambda shard, token, who, now: shard.plan(
                planned_by, token, who, group_id, request, now
            ),
        )
    except KafkaError as error:
        plan = Plan(group_id=group_id, error_code=error.code, error_message=error.message)
        return happened(plan)


def planned(
    groups: Groups,
    context: RequestContext,
    planned_by: Handler[RequestT],
    group_id: str,
    request: RequestT,
) -> Steps[Plan]:
    """Wait for the plan of a request."""
    plan: Plan = yield ask(groups, context, planned_by, group_id, request)
    return plan
