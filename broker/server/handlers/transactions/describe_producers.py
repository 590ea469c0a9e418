"""DescribeProducers (key 61), version 0: the idempotent producers of partitions (KIP-664)."""

from functools import partial

from broker.server.cluster.repeated import merged
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps, each
from broker.server.replication.partitions import Partitions
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)


class DescribeProducers:
    """Reads the producers of the logs that this broker leads."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def handle(self, context: RequestContext, request: DescribeProducersRequest) -> Steps[Answer]:
        """Describe each partition once, even if the request repeats it.

        Kafka repeats the answer, with all of its producers.
        """
        topics: list[TopicResponse] = []
        for topic in merged(request.topics, lambda topic: topic.name, _merge):
            indexes = dict.fromkeys(topic.partition_indexes)
            describe = partial(self._describe, topic.name)
            partitions = yield from each(indexes, describe, per_step=4)
            topics.append(TopicResponse(name=topic.name, partitions=partitions))
        return DescribeProducersResponse(topics=topics)

    def _describe(self, topic: str, index: int) -> PartitionResponse:
        try:
            producers = self._partitions.get(topic, index).log.producers.producers
        except KafkaError as error:
            return PartitionResponse(
                partition_index=index, error_code=error.code, error_message=error.message
            )
        return PartitionResponse(
            partition_index=index,
            active_producers=[
                ProducerState(
                    producer_id=entry.producer_id,
                    producer_epoch=entry.epoch,
                    last_sequence=entry.last_sequence,
                    last_timestamp=entry.last_timestamp_ms,
                    coordinator_epoch=entry.coordinator_epoch,
                    current_txn_start_offset=entry.transaction_first_offset,
                )
                for entry in producers.values()
            ],
        )


def _merge(first: TopicRequest, other: TopicRequest) -> None:
    first.partition_indexes += other.partition_indexes
