"""OffsetCommit (key 8), versions 0-10: write down how far a group has come.

v10 names topics by id (KIP-848). Partitions that do not exist are answered here and never reach the
group: UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION beside them, the others are committed.
"""

from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.topic_references import resolve_topic
from broker.server.coordinators.asked import when_answered
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext

FIRST_VERSION_WITH_TOPIC_IDS = 10


class OffsetCommit:
    """Commits offsets through the groups' shards."""

    def __init__(self, metadata: ClusterMetadata, groups: Groups) -> None:
        self._metadata = metadata
        self._groups = groups

    def handle(self, context: RequestContext, request: OffsetCommitRequest) -> Answer:
        """Commit what exists through the group's shard, and add the refusals of the rest."""
        refused: list[OffsetCommitResponseTopic] = []
        known: list[OffsetCommitRequestTopic] = []
        for topic in request.topics:
            refusal = self._take_out_unknown(context, topic)
            if refusal.partitions:
                refused.append(refusal)
            if topic.partitions or not refusal.partitions:
                known.append(topic)
        if refused and not known:
            return OffsetCommitResponse(topics=refused)
        request.topics = known
        try:
            asked = self._groups.ask(
                context,
                request.group_id,
                lambda shard, token, who, now: shard.commit_offsets(token, who, request, now),
            )
        except KafkaError as error:
            topics = [_refused(each, error.code) for each in known]
            return OffsetCommitResponse(topics=_merge(topics, refused))

        def make() -> OffsetCommitResponse:
            response = asked.response
            assert isinstance(response, OffsetCommitResponse), response
            response.topics = _merge(response.topics, refused)
            return response

        return when_answered(context, (asked,), make)

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


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
            for part in topic.partitions
        ],
    )


def _merge(
    answered: list[OffsetCommitResponseTopic], refused: list[OffsetCommitResponseTopic]
) -> list[OffsetCommitResponseTopic]:
    by_topic = {(topic.name, topic.topic_id): topic for topic in answered}
    for refusal in refused:
        same = by_topic.get((refusal.name, refusal.topic_id))
        if same is None:
            answered.append(refusal)
        else:
            same.partitions += refusal.partitions
    return answered
