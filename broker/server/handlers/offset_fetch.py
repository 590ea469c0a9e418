"""OffsetFetch (key 9), versions 0-10: how far groups have come.

v2 adds a group-level error and "all topics" (null). v8 asks for many groups at once (KIP-709).
v10 names topics by id; they are given their names here and their ids back in the answer. A group of
which very many partitions are asked is asked part by part (`parts`), also when all are asked for
and its shard says that these are very many.
"""

from collections.abc import Iterator

from broker.coordinator.group.offsets import OffsetsByTopic
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
from broker.server.coordinators.asked import (
    AskedShard,
    all_answered,
    answered,
    each_answered,
    when_answered,
)
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.parts import is_large, joined, parts_of
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import ITEMS_PER_STEP, Steps, any_of, distinct, each, each_in_steps

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
        stable = request.require_stable
        if context.api_version < FIRST_VERSION_WITH_MANY_GROUPS:
            group = yield from _as_group(request)
            if _is_large(group):
                answers = yield from self._answer_in_parts(context, group, stable)
                return (yield from _single_of_parts(answers, context))
            asked = self._ask(context, group, stable)
            return when_answered(
                context, (asked,), lambda: _single(self._answer(context, asked), context)
            )
        groups = yield from distinct(
            request.groups,
            lambda group: (group.group_id, None if group.topics is None else id(group)),
        )
        if (yield from any_of(groups, _is_large)):
            return (yield from self._answer_large(context, groups, stable))
        questions = yield from each(
            groups, lambda group: self._ask(context, group, stable), per_step=1
        )
        return (
            yield from each_answered(
                context,
                questions,
                lambda asked: self._answer(context, asked),
                lambda answers: OffsetFetchResponse(groups=answers),
            )
        )

    def _answer_large(
        self, context: RequestContext, groups: list[OffsetFetchRequestGroup], require_stable: bool
    ) -> AnswerWalk:
        def answer(group: OffsetFetchRequestGroup) -> Steps[OffsetFetchResponseGroup]:
            first, *others = yield from self._answer_in_parts(context, group, require_stable)
            if others:
                topics = [part.topics for part in (first, *others)]
                first.topics = yield from joined(topics, lambda topic: (topic.name, topic.topic_id))
            return first

        return OffsetFetchResponse(groups=(yield from each_in_steps(groups, answer)))

    def _answer_in_parts(
        self, context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool
    ) -> Steps[list[OffsetFetchResponseGroup]]:
        """Ask the group's shard part by part; if one is refused, that is the only answer."""
        questions = []
        for part in _parts(group):
            questions.append(self._ask(context, part, require_stable))
            yield
        yield from all_answered(questions)
        if isinstance(questions[0].response, dict):
            named = yield from _named(group, questions[0].response)
            answers = yield from self._answer_in_parts(context, named, require_stable)
            yield from each(answers, _drop_deleted, per_step=1)
            return answers
        answers = yield from each(questions, lambda asked: self._answer(context, asked), per_step=1)
        refused = next((answer for answer in answers if answer.error_code), None)
        return answers if refused is None else [refused]

    def _ask(
        self, context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool
    ) -> AskedShard:
        by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        for topic in group.topics or ():
            if not topic.name or topic.topic_id == ZERO_UUID:  # Else it is as it was committed.
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


def _as_group(request: OffsetFetchRequest) -> Steps[OffsetFetchRequestGroup]:
    if request.topics is None:
        return OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    # There may be very many of them, and nobody needs them twice.
    request.topics.reverse()
    topics: list[OffsetFetchRequestTopics] = []
    while request.topics:
        topic = request.topics.pop()
        topics.append(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
        )
        if not len(topics) % ITEMS_PER_STEP:
            yield
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def _indexes(topic: OffsetFetchRequestTopics) -> list[int]:
    return topic.partition_indexes


def _named(
    group: OffsetFetchRequestGroup, stored: OffsetsByTopic
) -> Steps[OffsetFetchRequestGroup]:
    """Ask for all that was committed by its names; what is committed from now on is not told."""
    topics = yield from each(
        list(stored.items()),
        lambda topic: OffsetFetchRequestTopics(
            name=topic[0],
            topic_id=next((known.topic_id for known in topic[1].values()), ZERO_UUID),
            partition_indexes=list(topic[1]),
        ),
    )
    return OffsetFetchRequestGroup(group_id=group.group_id, topics=topics)


def _drop_deleted(answer: OffsetFetchResponseGroup) -> None:
    """Leave out what was deleted between two parts: who asks for all is told of what there is."""
    for topic in answer.topics:
        topic.partitions = [found for found in topic.partitions if found.committed_offset >= 0]
    answer.topics = [topic for topic in answer.topics if topic.partitions]


def _is_large(group: OffsetFetchRequestGroup) -> bool:
    return group.topics is None or is_large(group.topics, _indexes)


def _parts(group: OffsetFetchRequestGroup) -> Iterator[OffsetFetchRequestGroup]:
    if group.topics is None or not is_large(group.topics, _indexes):
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


def _single_of_parts(
    answers: list[OffsetFetchResponseGroup], context: RequestContext
) -> AnswerWalk:
    error_code = answers[0].error_code
    answers.reverse()
    topics: list[list[OffsetFetchResponseTopic]] = []
    while answers:
        topics.append(_single(answers.pop(), context).topics)
        yield
    together = yield from joined(topics, lambda topic: topic.name)
    return OffsetFetchResponse(error_code=error_code, topics=together)


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
