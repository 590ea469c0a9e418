"""OffsetDelete (key 47), version 0: forget committed offsets (KIP-496).

Very many are deleted part by part (`parts`); a part that is refused is the whole answer, although
others may be done.
"""

from typing import NamedTuple

from broker.errors import ErrorCode
from broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.asked import AskedShard, all_answered, when_answered
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.parts import is_large, joined, parts_of
from broker.server.network.dispatch import Answer, AnswerWalk, RequestContext


class _Deletion(NamedTuple):
    """What the group's shard was asked to delete, and the answer for what does not exist."""

    asked: AskedShard
    unknown: list[OffsetDeleteResponseTopic]

    def answer(self) -> OffsetDeleteResponse:
        response = self.asked.response
        assert isinstance(response, OffsetDeleteResponse), response
        if response.error_code == 0:
            _add(response, self.unknown)
        return response


class OffsetDelete:
    """Deletes committed offsets through the groups' shards."""

    def __init__(self, metadata: ClusterMetadata, groups: Groups) -> None:
        self._metadata = metadata
        self._groups = groups

    def handle(self, context: RequestContext, request: OffsetDeleteRequest) -> Answer | AnswerWalk:
        """Delete through the group's shard; partitions that do not exist are answered here."""
        if is_large(request.topics, _partitions):
            return self._delete_in_parts(context, request)
        deletion = self._delete(context, request)
        return when_answered(context, (deletion.asked,), deletion.answer)

    def _delete_in_parts(self, context: RequestContext, request: OffsetDeleteRequest) -> AnswerWalk:
        deletions = []
        for topics in parts_of(request.topics, _partitions, _cut):
            part = OffsetDeleteRequest(group_id=request.group_id, topics=topics)
            deletions.append(self._delete(context, part))
            yield
        yield from all_answered([deletion.asked for deletion in deletions])
        answers: list[OffsetDeleteResponse] = []
        for deletion in deletions:
            answers.append(deletion.answer())
            yield
        deletions.reverse()
        while deletions:  # A part is much to let go of.
            deletions.pop()
            yield
        for answer in answers:
            if answer.error_code:
                return answer
        return OffsetDeleteResponse(
            topics=(
                yield from joined([answer.topics for answer in answers], lambda topic: topic.name)
            )
        )

    def _delete(self, context: RequestContext, request: OffsetDeleteRequest) -> _Deletion:
        unknown = [self._take_out_unknown(topic) for topic in request.topics]
        request.topics = [topic for topic in request.topics if topic.partitions]
        asked = self._groups.ask(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.delete_offsets(token, who, request, now),
        )
        return _Deletion(asked, unknown)

    def _take_out_unknown(self, topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
        """Leave in `topic` the partitions that exist, and return the refusal of the others."""
        image = self._metadata.image.topics.by_name.get(topic.name)
        existing = {} if image is None else image.partitions
        unknown = [part for part in topic.partitions if part.partition_index not in existing]
        topic.partitions = [part for part in topic.partitions if part.partition_index in existing]
        return OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                )
                for partition in unknown
            ],
        )


def _partitions(topic: OffsetDeleteRequestTopic) -> list[OffsetDeleteRequestPartition]:
    return topic.partitions


def _cut(topic: OffsetDeleteRequestTopic, some: slice) -> OffsetDeleteRequestTopic:
    return OffsetDeleteRequestTopic(name=topic.name, partitions=topic.partitions[some])


def _add(response: OffsetDeleteResponse, unknown: list[OffsetDeleteResponseTopic]) -> None:
    answered = {topic.name: topic for topic in response.topics}
    for refused in unknown:
        if refused.name in answered:
            answered[refused.name].partitions += refused.partitions
        elif refused.partitions:
            response.topics.append(refused)
