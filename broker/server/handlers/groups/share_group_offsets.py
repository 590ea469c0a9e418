"""The offsets of share groups (KIP-932), which are at the share coordinators.

DescribeShareGroupOffsets (key 90), versions 0-1: where share groups are. The lag (KIP-1226) needs
the end of each partition, which its leader is asked for: it is that end without the offsets that
are done, below the start offset or behind it. It is -1 for a group that has not begun to read, or
whose leader does not count.

AlterShareGroupOffsets (key 91), version 0: new start offsets. DeleteShareGroupOffsets (key 92),
version 0: forget whole topics. Both have two halves: the group's shard plans, then it notes what
the share coordinators have done.
"""

from typing import TypeVar

from broker.coordinator.group.shard import Handler
from broker.coordinator.share_group.offsets import (
    Deleted,
    Initialized,
    Plan,
    alter_offsets,
    begin_to_delete_offsets,
    complete_deletion,
    complete_initialization,
    initialized_partitions,
)
from broker.coordinator.share_state.state import UNINITIALIZED
from broker.metadata.topic_names import SHARE_GROUP_STATE
from broker.server.cluster.auto_topics import AutoTopics
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.request_entries import merged
from broker.server.coordinators.end_offsets import EndOffset, EndOffsets
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.share_state_calls import (
    Results,
    ShareStateCalls,
    by_topic,
    divided,
)
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, each, happened
from broker.share.session import PartitionKey
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from common.kafka.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from common.kafka.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from common.kafka.protocol.messages.read_share_group_state_summary import PartitionResult

Partitions = dict[bytes, tuple[int, ...]]


class DescribeShareGroupOffsets:
    """Asks the groups' shards, the share coordinators, and the leaders of the partitions."""

    def __init__(
        self,
        groups: Groups,
        share_state_calls: ShareStateCalls,
        end_offsets: EndOffsets,
        metadata: ClusterMetadata,
    ) -> None:
        self._groups = groups
        self._calls = share_state_calls
        self._end_offsets = end_offsets
        self._metadata = metadata

    def handle(
        self, context: RequestContext, request: DescribeShareGroupOffsetsRequest
    ) -> Steps[Answer]:
        """Describe each group; without topics all partitions that have state."""
        plans = yield from each(
            request.groups,
            lambda group: ask(
                self._groups, context, initialized_partitions, group.group_id, group.group_id
            ),
        )
        groups = []
        for wanted, asked in zip(request.groups, plans, strict=True):
            groups.append((yield from self._described(wanted, asked)))
        return DescribeShareGroupOffsetsResponse(groups=groups)

    def _described(
        self, wanted: DescribeShareGroupOffsetsRequestGroup, asked: Later
    ) -> Steps[DescribeShareGroupOffsetsResponseGroup]:
        plan = yield asked
        group = DescribeShareGroupOffsetsResponseGroup(
            group_id=wanted.group_id, error_code=plan.error_code, error_message=plan.error_message
        )
        if plan.error_code != ErrorCode.NONE:
            return group
        partitions: Partitions = plan.partitions
        if wanted.topics is not None:
            partitions = self._named(wanted, group)
        if not partitions:
            return group
        results: Results = yield self._calls.summarize(wanted.group_id, partitions)
        counted = [place for place, result in results.items() if _is_counted(result)]
        ends: dict[PartitionKey, EndOffset] = yield self._end_offsets.of(counted)
        topics: dict[bytes, DescribeShareGroupOffsetsResponseTopic] = {}
        by_id = self._metadata.image.topics.by_id
        for topic_id in partitions:
            name = by_id[topic_id].name if topic_id in by_id else ""
            topics[topic_id] = DescribeShareGroupOffsetsResponseTopic(
                topic_id=topic_id, topic_name=name
            )

        def describe(place: PartitionKey) -> None:
            partition = _partition(results[place], ends.get(place))
            topics[place[0]].partitions.append(partition)

        yield from each(results, describe)
        group.topics = [*topics.values(), *group.topics]
        return group

    def _named(
        self,
        wanted: DescribeShareGroupOffsetsRequestGroup,
        group: DescribeShareGroupOffsetsResponseGroup,
    ) -> Partitions:
        """Return the partitions that a request names; answer those of unknown topics."""
        by_name = self._metadata.image.topics.by_name
        partitions: dict[bytes, dict[int, None]] = {}
        for topic in wanted.topics or ():
            image = by_name.get(topic.topic_name)
            if image is not None:
                partitions.setdefault(image.topic_id, {}).update(dict.fromkeys(topic.partitions))
                continue
            group.topics.append(
                DescribeShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name,
                    partitions=[
                        DescribeShareGroupOffsetsResponsePartition(
                            partition_index=index, start_offset=UNINITIALIZED
                        )
                        for index in topic.partitions
                    ],
                )
            )
        return {topic_id: tuple(indexes) for topic_id, indexes in partitions.items() if indexes}


def _is_counted(result: PartitionResult) -> bool:
    return (
        result.error_code == ErrorCode.NONE
        and result.start_offset != UNINITIALIZED
        and result.delivery_complete_count != UNINITIALIZED
    )


def _partition(
    result: PartitionResult, end: EndOffset | None
) -> DescribeShareGroupOffsetsResponsePartition:
    """Describe a partition; as in Kafka, one whose state cannot be read has no offset."""
    partition = DescribeShareGroupOffsetsResponsePartition(partition_index=result.partition)
    if end is not None and end.error_code:
        partition.error_code = end.error_code
        partition.error_message = "The end of the partition is not known."
        return partition
    if result.error_code:
        partition.start_offset = UNINITIALIZED
        return partition
    partition.start_offset = result.start_offset
    partition.leader_epoch = result.leader_epoch
    if end is not None:
        partition.lag = end.offset - result.start_offset - result.delivery_complete_count
    return partition


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
