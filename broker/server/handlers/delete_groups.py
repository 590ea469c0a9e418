"""DeleteGroups (key 42), versions 0-2: forget empty groups and their offsets (KIP-229)."""

from broker.errors import KafkaError
from broker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from broker.server.coordinators.asked import AskedShard, answered, each_answered
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
        questions = yield from each(
            group_ids, lambda group_id: self._ask(context, group_id), per_step=4
        )

        def take(asked: AskedShard) -> DeletableGroupResult:
            assert isinstance(asked.response, DeletableGroupResult), asked.response
            return asked.response

        return (
            yield from each_answered(
                context, questions, take, lambda taken: DeleteGroupsResponse(results=taken)
            )
        )

    def _ask(self, context: RequestContext, group_id: str) -> AskedShard:
        try:
            return self._groups.ask(
                context,
                group_id,
                lambda shard, token, who, now: shard.delete_group(token, who, group_id, now),
            )
        except KafkaError as error:
            return answered(context, DeletableGroupResult(group_id=group_id, error_code=error.code))
