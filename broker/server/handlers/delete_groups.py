"""DeleteGroups (key 42), versions 0-2: forget empty groups and their offsets (KIP-229)."""

from broker.errors import KafkaError
from broker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import distinct, each


class DeleteGroups:
    """Asks each group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: DeleteGroupsRequest) -> AnswerWalk:
        """Delete each group in its own shard."""
        group_ids = yield from distinct(request.groups_names, lambda group_id: group_id)
        results = yield from each(
            group_ids, lambda group_id: self._delete(context, group_id), per_step=4
        )
        return DeleteGroupsResponse(results=results)

    def _delete(self, context: RequestContext, group_id: str) -> DeletableGroupResult:
        try:
            answer = self._groups.ask_now(
                context,
                group_id,
                lambda shard, token, who, now: shard.delete_group(token, who, group_id, now),
            )
        except KafkaError as error:
            return DeletableGroupResult(group_id=group_id, error_code=error.code)
        assert isinstance(answer, DeletableGroupResult)
        return answer
