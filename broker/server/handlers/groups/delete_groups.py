"""DeleteGroups (key 42), versions 0-2: delete empty groups and their offsets (KIP-229)."""

from functools import partial

from broker.errors import KafkaError
from broker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, all_values, each, happened


class DeleteGroups:
    """Asks each group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: DeleteGroupsRequest) -> Steps[Answer]:
        """Delete each group in its own shard."""
        questions = yield from each(
            dict.fromkeys(request.groups_names), partial(self._ask, context)
        )
        results = yield from all_values(questions)
        return DeleteGroupsResponse(results=results)

    def _ask(self, context: RequestContext, group_id: str) -> Later:
        try:
            return self._groups.ask(
                context,
                group_id,
                lambda shard, token, who, now: shard.delete_group(token, who, group_id, now),
            )
        except KafkaError as error:
            return happened(DeletableGroupResult(group_id=group_id, error_code=error.code))
