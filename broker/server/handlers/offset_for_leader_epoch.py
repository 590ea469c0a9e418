"""OffsetForLeaderEpoch (key 23), versions 2-4: where an epoch ends in this log (KIP-101, 320)."""

from broker.errors import KafkaError
from broker.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from broker.replication.fencing import validate_leader_epoch
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import Steps, each, each_in_steps
from broker.server.replication.partitions import Partitions


class OffsetForLeaderEpoch:
    """Finds the ends of epochs in the logs led here."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def handle(self, context: RequestContext, request: OffsetForLeaderEpochRequest) -> AnswerWalk:
        """Answer each partition's end offset for an epoch, or its error."""

        def answer(topic: OffsetForLeaderTopic) -> Steps[OffsetForLeaderTopicResult]:
            partitions = yield from each(
                topic.partitions, lambda wanted: self._answer(topic.topic, wanted)
            )
            return OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions)

        topics = yield from each_in_steps(request.topics, answer)
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
