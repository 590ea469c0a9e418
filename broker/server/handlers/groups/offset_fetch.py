"""OffsetFetch (key 9), versions 0-10: the committed offsets of groups.

v2 adds a group-level error and "all topics" (null). v8 asks for many groups at once (KIP-709).
v10 names topics by id: this handler replaces ids by names, and restores them in the answer. Very
many partitions of a group are split into parts (`parts`); so are all partitions of a group if its
shard answers that there are very many.
"""

from collections.abc import Iterator

from broker.coordinator.group.offsets import OffsetsByTopic
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.request_entries import distinct, resolve_topic
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.parts import joined, parts_of
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, each, happened
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from common.kafka.protocol.wire import ZERO_UUID

FIRST_VERSION_WITH_MANY_GROUPS = 8
FIRST_VERSION_WITH_GROUP_ERROR = 2
FIRST_VERSION_WITH_TOPIC_IDS = 10


class OffsetFetch:
    """Reads committed offsets from the groups' shards."""

    def __init__(self, metadata: ClusterMetadata, groups: Groups) -> None:
        self._metadata = metadata
        self._groups = groups

    def handle(self, context: RequestContext, request: OffsetFetchRequest) -> Steps[Answer]:
        """Answer every group, each from its own shard; all offsets of a group only once."""
        stable = request.require_stable
        if context.api_version < FIRST_VERSION_WITH_MANY_GROUPS:
            answered = yield from self._answer_group(context, _as_group(request), stable)
            return _single(answered, context)
        groups = distinct(
            request.groups,
            lambda group: (group.group_id, None if group.topics is None else id(group)),
        )
        answers: list[OffsetFetchResponseGroup] = []
        for group in groups:
            answers.append((yield from self._answer_group(context, group, stable)))
            yield None
        return OffsetFetchResponse(groups=answers)

    def _answer_group(
        self, context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool
    ) -> Steps[OffsetFetchResponseGroup]:
        """Ask the group's shard in parts; the refusal of a part is the whole answer."""
        questions: list[Later] = []
        for part in _parts(group):
            if questions:
                yield None
            questions.append(self._ask(context, part, require_stable))
        answers: list[OffsetFetchResponseGroup] = []
        for question in questions:
            found = yield question
            if isinstance(found, dict):  # All offsets were asked for, and they are very many.
                return (yield from self._answer_all(context, group, found, require_stable))
            answers.append(self._with_topic_ids(context, found))
            yield None
        first, *others = answers
        for answer in answers:
            if answer.error_code:
                return answer
        if others:
            topics = [part.topics for part in answers]
            first.topics = joined(topics, lambda topic: (topic.name, topic.topic_id))
        return first

    def _answer_all(
        self,
        context: RequestContext,
        group: OffsetFetchRequestGroup,
        stored: OffsetsByTopic,
        require_stable: bool,
    ) -> Steps[OffsetFetchResponseGroup]:
        """Ask for the committed offsets by the names of their partitions, in parts."""
        named = yield from _named(group, stored)
        answer = yield from self._answer_group(context, named, require_stable)
        # An answer to "all topics" leaves out offsets that were deleted between two parts.
        for topic in answer.topics:
            topic.partitions = [found for found in topic.partitions if found.committed_offset >= 0]
            yield None
        answer.topics = [topic for topic in answer.topics if topic.partitions]
        return answer

    def _ask(
        self, context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool
    ) -> Later:
        by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        for topic in group.topics or ():
            if not topic.name or topic.topic_id == ZERO_UUID:  # With both it is from the shard.
                resolve_topic(self._metadata.image, topic, by_id=by_id and not topic.name)
        try:
            return self._groups.ask(
                context,
                group.group_id,
                lambda shard, token, who, now: shard.fetch_offsets(
                    token, who, group, now, require_stable=require_stable
                ),
            )
        except KafkaError as error:
            return happened(
                OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
            )

    def _with_topic_ids(
        self, context: RequestContext, group: OffsetFetchResponseGroup
    ) -> OffsetFetchResponseGroup:
        if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
            for topic in group.topics:
                if topic.topic_id == ZERO_UUID:
                    resolve_topic(self._metadata.image, topic, by_id=False)
        return group


def _as_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    if request.topics is None:
        return OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    topics = [
        OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
        for topic in request.topics
    ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _indexes(topic: OffsetFetchRequestTopics) -> list[int]:
    return topic.partition_indexes


def _named(
    group: OffsetFetchRequestGroup, stored: OffsetsByTopic
) -> Steps[OffsetFetchRequestGroup]:
    """Return a request that names all committed partitions; later commits are left out."""
    topics = yield from each(
        list(stored.items()),
        lambda topic: OffsetFetchRequestTopics(
            name=topic[0],
            topic_id=next((known.topic_id for known in topic[1].values()), ZERO_UUID),
            partition_indexes=list(topic[1]),
        ),
    )
    return OffsetFetchRequestGroup(group_id=group.group_id, topics=topics)


def _parts(group: OffsetFetchRequestGroup) -> Iterator[OffsetFetchRequestGroup]:
    if group.topics is None:
        yield group
        return
    for topics in parts_of(group.topics, _indexes, _cut):
        yield OffsetFetchRequestGroup(
            group_id=group.group_id,
            member_id=group.member_id,
            member_epoch=group.member_epoch,
            topics=topics,
        )


def _cut(topic: OffsetFetchRequestTopics, some: slice) -> OffsetFetchRequestTopics:
    return OffsetFetchRequestTopics(
        name=topic.name, topic_id=topic.topic_id, partition_indexes=topic.partition_indexes[some]
    )


def _single(group: OffsetFetchResponseGroup, context: RequestContext) -> OffsetFetchResponse:
    """Return one group's answer in the old form; before v2 its error is beside each partition."""
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
