"""OffsetCommit (key 8), versions 0-10: commit the offsets of a group.

v10 names topics by id (KIP-848). Partitions that do not exist are answered here with
UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION, and never reach the group; the others are committed.
These are one batch, or, if there are more than MAX_ENTRIES_AT_ONCE, one for each part (`parts`).
"""

from typing import NamedTuple

from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.request_entries import resolve_topic
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.parts import joined, parts_of
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, happened
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

FIRST_VERSION_WITH_TOPIC_IDS = 10


class _Commit(NamedTuple):
    """The questions to the group's shard, and the partitions that were refused before."""

    asked: Later
    refused: list[OffsetCommitResponseTopic]


class OffsetCommit:
    """Commits offsets through the groups' shards."""

    def __init__(self, metadata: ClusterMetadata, groups: Groups) -> None:
        self._metadata = metadata
        self._groups = groups

    def handle(self, context: RequestContext, request: OffsetCommitRequest) -> Steps[Answer]:
        """Commit existing partitions through the group's shard; refuse the others."""
        commits: list[_Commit] = []
        for topics in parts_of(request.topics, _partitions, _cut):
            if commits:
                yield None
            commits.append(self._commit(context, request, topics))
        answers: list[list[OffsetCommitResponseTopic]] = []
        for asked, refused in commits:
            response: OffsetCommitResponse = yield asked
            answers += [response.topics, refused]
        return OffsetCommitResponse(
            topics=joined(answers, lambda topic: (topic.name, topic.topic_id))
        )

    def _commit(
        self,
        context: RequestContext,
        request: OffsetCommitRequest,
        topics: list[OffsetCommitRequestTopic],
    ) -> _Commit:
        """Put a part of the topics to the shard."""
        refused: list[OffsetCommitResponseTopic] = []
        known: list[OffsetCommitRequestTopic] = []
        for topic in topics:
            refusal = self._take_out_unknown(context, topic)
            if refusal.partitions:
                refused.append(refusal)
            if topic.partitions or not refusal.partitions:
                known.append(topic)
        if refused and not known:
            return _Commit(happened(OffsetCommitResponse(topics=[])), refused)
        part = _part(request, known)
        try:
            asked: Later = self._groups.ask(
                context,
                request.group_id,
                lambda shard, token, who, now: shard.commit_offsets(token, who, part, now),
            )
        except KafkaError as error:
            refusals = [_refused(topic, error.code) for topic in known]
            asked = happened(OffsetCommitResponse(topics=refusals))
        return _Commit(asked, refused)

    def _take_out_unknown(
        self, context: RequestContext, topic: OffsetCommitRequestTopic
    ) -> OffsetCommitResponseTopic:
        """Leave in `topic` the partitions that exist, and return the refusal of the others."""
        by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
        image = resolve_topic(self._metadata.image, topic, by_id=by_id)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if image is None and by_id:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        existing = {} if image is None else image.partitions
        refused = OffsetCommitRequestTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[part for part in topic.partitions if part.partition_index not in existing],
        )
        topic.partitions = [part for part in topic.partitions if part.partition_index in existing]
        return _refused(refused, code)


def _partitions(topic: OffsetCommitRequestTopic) -> list[OffsetCommitRequestPartition]:
    return topic.partitions


def _cut(topic: OffsetCommitRequestTopic, some: slice) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(
        name=topic.name, topic_id=topic.topic_id, partitions=topic.partitions[some]
    )


def _part(
    request: OffsetCommitRequest, topics: list[OffsetCommitRequestTopic]
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        retention_time_ms=request.retention_time_ms,
        topics=topics,
    )


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
            for part in topic.partitions
        ],
    )
