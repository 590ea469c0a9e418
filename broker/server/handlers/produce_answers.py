"""What a Produce is asked and answers, put together: partition by partition, topic by topic."""

from broker.errors import InvalidRecordsError, KafkaError
from broker.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)


def answered_topic(
    topic: TopicProduceData, answers: list[PartitionProduceResponse]
) -> TopicProduceResponse:
    """Answer for one topic."""
    return TopicProduceResponse(
        name=topic.name, topic_id=topic.topic_id, partition_responses=answers
    )


def refused_topic(topic: TopicProduceData, error: KafkaError) -> TopicProduceResponse:
    """Answer every partition of a topic with the same refusal."""
    return answered_topic(
        topic, [refused(partition.index, error) for partition in topic.partition_data]
    )


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


def without_repeated(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """Keep what is said last of a partition, as Kafka does."""
    merged: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        of_topic = merged.setdefault((topic.name, topic.topic_id), {})
        of_topic.update((partition.index, partition) for partition in topic.partition_data)
    return [
        TopicProduceData(name=name, topic_id=topic_id, partition_data=list(of_topic.values()))
        for (name, topic_id), of_topic in merged.items()
    ]
