"""What a Produce is asked and answers, put together: partition by partition, topic by topic."""

from broker.errors import InvalidRecordsError, KafkaError
from broker.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from broker.server.network.walks import ITEMS_PER_STEP, Steps, each, merged


def answered_topic(
    topic: TopicProduceData, answers: list[PartitionProduceResponse]
) -> TopicProduceResponse:
    """Answer for one topic."""
    return TopicProduceResponse(
        name=topic.name, topic_id=topic.topic_id, partition_responses=answers
    )


def refused_topic(topic: TopicProduceData, error: KafkaError) -> Steps[TopicProduceResponse]:
    """Answer every partition of a topic with the same refusal."""
    answers = yield from each(topic.partition_data, lambda data: refused(data.index, error))
    return answered_topic(topic, answers)


def refused(index: int, error: KafkaError) -> PartitionProduceResponse:
    """Answer a partition with a refusal."""
    faulty = error.records if isinstance(error, InvalidRecordsError) else []
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=message)
            for place, message in faulty
        ],
        error_message=error.message,
    )


def without_repeated(topics: list[TopicProduceData]) -> Steps[list[TopicProduceData]]:
    """Keep what is said last of a partition, as Kafka does."""
    kept = yield from merged(topics, lambda topic: (topic.name, topic.topic_id), _merge)
    for number, topic in enumerate(kept, 1):
        if len(topic.partition_data) > 1:
            topic.partition_data = yield from merged(
                topic.partition_data, lambda data: data.index, _replace
            )
        if not number % ITEMS_PER_STEP:
            yield
    return kept


def _merge(first: TopicProduceData, other: TopicProduceData) -> None:
    first.partition_data += other.partition_data


def _replace(first: PartitionProduceData, other: PartitionProduceData) -> None:
    first.records = other.records
