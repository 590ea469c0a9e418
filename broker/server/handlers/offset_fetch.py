"""OffsetFetch (key 9), versions 0-10: how far groups have come.

v2 adds a group-level error and "all topics" (null). v8 asks for many groups at once (KIP-709).
v10 names topics by id; they are given their names here and their ids back in the answer.
"""

from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from broker.protocol.wire import ZERO_UUID
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.topic_references import resolve_topic
from broker.server.coordinators.asked import AskedShard, answered, when_answered
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import distinct, each

FIRST_VERSION_WITH_MANY_GROUPS = 8
FIRST_VERSION_WITH_GROUP_ERROR = 2
FIRST_VERSION_WITH_TOPIC_IDS = 10


class OffsetFetch:
    """Reads committed offsets from the groups' shards."""

    def __init__(self, metadata: ClusterMetadata, groups: Groups) -> None:
        self._metadata = metadata
        self._groups = groups

    def handle(self, context: RequestContext, request: OffsetFetchRequest) -> AnswerWalk:
        """Answer every group, each from its own shard; all offsets of a group only once."""
        yield
        if context.api_version < FIRST_VERSION_WITH_MANY_GROUPS:
            asked = self._ask(context, _as_group(request))
            return when_answered(
                context, (asked,), lambda: _single(self._answer(context, asked), context)
            )
        groups = yield from distinct(
            request.groups,
            lambda group: (group.group_id, None if group.topics is None else id(group)),
        )
        questions = yield from each(groups, lambda group: self._ask(context, group), per_step=1)
        return when_answered(
            context,
            questions,
            lambda: OffsetFetchResponse(
                groups=[self._answer(context, asked) for asked in questions]
            ),
        )

    def _ask(self, context: RequestContext, group: OffsetFetchRequestGroup) -> AskedShard:
        by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        for topic in group.topics or ():
            resolve_topic(self._metadata.image, topic, by_id=by_id)
        try:
            return self._groups.ask(
                context,
                group.group_id,
                lambda shard, token, who, now: shard.fetch_offsets(token, who, group, now),
            )
        except KafkaError as error:
            return answered(
                context,
                OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code),
            )

    def _answer(self, context: RequestContext, asked: AskedShard) -> OffsetFetchResponseGroup:
        group = asked.response
        assert isinstance(group, OffsetFetchResponseGroup), group
        if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            for topic in group.topics:
                if topic.topic_id == ZERO_UUID:
                    resolve_topic(self._metadata.image, topic, by_id=False)
        return group


def _as_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    if request.topics is None:
        return OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=[
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ],
    )


def _single(group: OffsetFetchResponseGroup, context: RequestContext) -> OffsetFetchResponse:
    """Put one group's answer into the old shape; before v2 its error goes beside partitions."""
    has_group_error = context.api_version >= FIRST_VERSION_WITH_GROUP_ERROR
    beside = ErrorCode.NONE if has_group_error else group.error_code
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code or beside,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )
