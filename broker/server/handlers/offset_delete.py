"""OffsetDelete (key 47), version 0: forget committed offsets (KIP-496)."""

from broker.errors import ErrorCode
from broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.coordinators.asked import when_answered
from broker.server.coordinators.groups import Groups
from broker.server.network.dispatch import Answer, RequestContext


class OffsetDelete:
    """Deletes committed offsets through the groups' shards."""

    def __init__(self, metadata: ClusterMetadata, groups: Groups) -> None:
        self._metadata = metadata
        self._groups = groups

    def handle(self, context: RequestContext, request: OffsetDeleteRequest) -> Answer:
        """Delete through the group's shard; partitions that do not exist are answered here."""
        unknown = [self._take_out_unknown(topic) for topic in request.topics]
        request.topics = [topic for topic in request.topics if topic.partitions]
        asked = self._groups.ask(
            context,
            request.group_id,
            lambda shard, token, who, now: shard.delete_offsets(token, who, request, now),
        )

        def make() -> OffsetDeleteResponse:
            response = asked.response
            assert isinstance(response, OffsetDeleteResponse), response
            if response.error_code == 0:
                _add(response, unknown)
            return response

        return when_answered(context, (asked,), make)

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


def _add(response: OffsetDeleteResponse, unknown: list[OffsetDeleteResponseTopic]) -> None:
    answered = {topic.name: topic for topic in response.topics}
    for refused in unknown:
        if refused.name in answered:
            answered[refused.name].partitions += refused.partitions
        elif refused.partitions:
            response.topics.append(refused)
