"""OffsetForLeaderEpoch (key 23), versions 2-4: the end of an epoch in this log (KIP-101, 320)."""

from functools import partial

from broker.replication.fencing import validate_leader_epoch
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps, each
from broker.server.replication.partitions import Partitions
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


class OffsetForLeaderEpoch:
    """Finds the ends of epochs in the logs led here."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def handle(
        self, context: RequestContext, request: OffsetForLeaderEpochRequest
    ) -> Steps[Answer]:
        """Answer each partition's end offset for an epoch, or its error."""
        topics: list[OffsetForLeaderTopicResult] = []
        for topic in request.topics:
            answer = partial(self._answer, topic.topic)
            partitions = yield from each(topic.partitions, answer)
            yield None
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
        return OffsetForLeaderEpochResponse(topics=topics)

    def _answer(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
        try:
            partition = self._partitions.get(topic, wanted.partition)
            assert partition.leader is not None, topic
            validate_leader_epoch(wanted.current_leader_epoch, partition.leader.leader_epoch)
        except KafkaError as error:
            return EpochEndOffset(partition=wanted.partition, error_code=error.code)
        leader_epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
        return EpochEndOffset(
            partition=wanted.partition, leader_epoch=leader_epoch, end_offset=end_offset
        )
