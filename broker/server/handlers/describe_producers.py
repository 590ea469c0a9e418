"""DescribeProducers (key 61), version 0: the idempotent producers of partitions (KIP-664)."""

from functools import partial

from broker.errors import KafkaError
from broker.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import each
from broker.server.replication.partitions import Partitions


class DescribeProducers:
    """Looks into the logs led here."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def handle(self, context: RequestContext, request: DescribeProducersRequest) -> AnswerWalk:
        """Describe each partition asked for, once, however often it is named.

        Kafka repeats the answer, however many producers it names.
        """
        indexes: dict[str, list[int]] = {}
        for topic in request.topics:
            indexes.setdefault(topic.name, []).extend(topic.partition_indexes)
            yield
        topics: list[TopicResponse] = []
        for name, wanted in indexes.items():
            partitions = yield from each(
                dict.fromkeys(wanted), partial(self._describe, name), per_step=4
            )
            topics.append(TopicResponse(name=name, partitions=partitions))
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
