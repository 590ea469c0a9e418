"""OffsetDelete (key 47), version 0: delete committed offsets (KIP-496).

Very many offsets are deleted in parts (`parts`); the refusal of a part is the whole answer,
although other parts may be done.
"""

from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.groups import Groups
from broker.server.coordinators.parts import joined, parts_of
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


class OffsetDelete:
    """Deletes committed offsets through the groups' shards."""

    def __init__(self, metadata: ClusterMetadata, groups: Groups) -> None:
        self._metadata = metadata
        self._groups = groups

    def handle(self, context: RequestContext, request: OffsetDeleteRequest) -> Steps[Answer]:
        """Delete through the group's shard; partitions that do not exist are answered here."""
        questions: list[Later] = []
        refused: list[list[OffsetDeleteResponseTopic]] = []
        for topics in parts_of(request.topics, _partitions, _cut):
            if questions:
                yield None
            unknown = [self._take_out_unknown(topic) for topic in topics]
            refused.append([topic for topic in unknown if topic.partitions])
            questions.append(self._ask(context, request.group_id, topics))
        answers = []
        for question, unknown in zip(questions, refused, strict=True):
            response: OffsetDeleteResponse = yield question
            if response.error_code:
                return response
            answers += [response.topics, unknown]
        return OffsetDeleteResponse(topics=joined(answers, lambda topic: topic.name))

    def _ask(
        self, context: RequestContext, group_id: str, topics: list[OffsetDeleteRequestTopic]
    ) -> Later:
        known = [topic for topic in topics if topic.partitions]
        part = OffsetDeleteRequest(group_id=group_id, topics=known)
        return self._groups.ask(
            context,
            group_id,
            lambda shard, token, who, now: shard.delete_offsets(token, who, part, now),
        )

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
