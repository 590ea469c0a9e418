"""DeleteShareGroupOffsets (key 92), version 0: the state of whole topics (KIP-932)."""

from broker.coordinator.share_group.offsets import (
    Deleted,
    begin_to_delete_offsets,
    complete_deletion,
)
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.share_state_calls import Results, ShareStateCalls, divided
from broker.server.handlers.share_groups.plans import planned
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)


class DeleteShareGroupOffsets:
    """Asks the group's shard, and then the share coordinator to forget the states."""

    def __init__(self, groups: Groups, share_state_calls: ShareStateCalls) -> None:
        self._groups = groups
        self._calls = share_state_calls

    def handle(
        self, context: RequestContext, request: DeleteShareGroupOffsetsRequest
    ) -> Steps[Answer]:
        """Answer when the share coordinator has forgotten the topics."""
        group_id = request.group_id
        if group_id and not request.topics:
            return DeleteShareGroupOffsetsResponse()
        plan = yield from planned(self._groups, context, begin_to_delete_offsets, group_id, request)
        response = DeleteShareGroupOffsetsResponse(
            error_code=plan.error_code,
            error_message=plan.error_message,
            responses=list(plan.topics),
        )
        if not plan.partitions:
            return response
        results: Results = yield self._calls.delete(group_id, plan.partitions)
        _, refused = divided(results)
        codes = {topic_id: result for (topic_id, _), result in refused.items()}
        for topic_id, name in plan.names.items():
            topic = DeleteShareGroupOffsetsResponseTopic(topic_id=topic_id, topic_name=name)
            if topic_id in codes:
                topic.error_code = codes[topic_id].error_code
                topic.error_message = codes[topic_id].error_message
            response.responses.append(topic)
        deleted = Deleted(group_id, frozenset(plan.partitions.keys() - codes.keys()))
        plan = yield from planned(self._groups, context, complete_deletion, group_id, deleted)
        if plan.error_code != ErrorCode.NONE:
            response.error_code, response.error_message = plan.error_code, plan.error_message
        return response
