"""AlterShareGroupOffsets (key 91), version 0: the start offsets of a share group (KIP-932)."""

from broker.coordinator.share_group.offsets import (
    Initialized,
    alter_offsets,
    complete_initialization,
)
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.server.cluster.auto_topics import AutoTopics
from broker.server.cluster.repeated import merged
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.share_state_calls import Results, ShareStateCalls, by_topic, divided
from broker.server.handlers.share_groups.plans import planned
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps
from common.kafka.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)


class AlterShareGroupOffsets:
    """Asks the group's shard, and then the share coordinator to begin the states anew."""

    def __init__(
        self, groups: Groups, share_state_calls: ShareStateCalls, auto_topics: AutoTopics
    ) -> None:
        self._groups = groups
        self._calls = share_state_calls
        self._auto_topics = auto_topics

    def handle(
        self, context: RequestContext, request: AlterShareGroupOffsetsRequest
    ) -> Steps[Answer]:
        """Answer when the share coordinator has the new offsets."""
        group_id = request.group_id
        if group_id and not request.topics:
            return AlterShareGroupOffsetsResponse()
        if self._groups.lacks_share_coordinator:
            yield from self._auto_topics.ensure([SHARE_GROUP_STATE])
        request.topics = merged(request.topics, lambda topic: topic.topic_name, _merge)
        plan = yield from planned(self._groups, context, alter_offsets, group_id, request)
        response = AlterShareGroupOffsetsResponse(
            error_code=plan.error_code,
            error_message=plan.error_message,
            responses=list(plan.topics),
        )
        if plan.initialize is None:
            return response
        results: Results = yield self._calls.initialize(plan.initialize)
        done, refused = divided(results)
        for topic in response.responses:
            for partition in topic.partitions:
                result = refused.get((topic.topic_id, partition.partition_index))
                if result is not None:
                    partition.error_code = result.error_code
                    partition.error_message = result.error_message
        initialized = Initialized(group_id, done, by_topic(refused))
        plan = yield from planned(
            self._groups, context, complete_initialization, group_id, initialized
        )
        response.error_code, response.error_message = plan.error_code, plan.error_message
        return response


def _merge(
    first: AlterShareGroupOffsetsRequestTopic, other: AlterShareGroupOffsetsRequestTopic
) -> None:
    first.partitions += other.partitions
