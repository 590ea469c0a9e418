"""DescribeShareGroupOffsets (key 90), versions 0-1: where share groups are (KIP-932).

The offsets are at the share coordinators. The lag (KIP-1226) needs the end of each partition, which
its leader is asked for: it is that end without the offsets that are done, below the start offset or
behind it. It is -1 for a group that has not begun to read, or whose leader does not count.
"""

from broker.coordinator.share_group.offsets import initialized_partitions
from broker.coordinator.share_state.state import UNINITIALIZED
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.end_offsets import EndOffset, EndOffsets
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.share_state_calls import Place, Results, ShareStateCalls
from broker.server.handlers.share_groups.plans import ask
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, each
from common.kafka.errors import ErrorCode
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
        ends: dict[Place, EndOffset] = yield self._end_offsets.of(counted)
        topics: dict[bytes, DescribeShareGroupOffsetsResponseTopic] = {}
        by_id = self._metadata.image.topics.by_id
        for topic_id in partitions:
            name = by_id[topic_id].name if topic_id in by_id else ""
            topics[topic_id] = DescribeShareGroupOffsetsResponseTopic(
                topic_id=topic_id, topic_name=name
            )

        def describe(place: Place) -> None:
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
