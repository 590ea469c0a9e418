"""DeleteGroups (key 42), versions 0-2: forget empty groups and their offsets (KIP-229)."""

from broker.errors import KafkaError
from broker.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import RequestContext


class DeleteGroups:
    """Asks each group's shard."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    def handle(self, context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        """Delete each group in its own shard."""
        return DeleteGroupsResponse(
            results=[
                self._delete(context, group_id) for group_id in dict.fromkeys(request.groups_names)
            ]
        )

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
