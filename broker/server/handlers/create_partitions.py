"""CreatePartitions (key 37), versions 0-3: raise the partition count of topics (KIP-195)."""

from broker.errors import ErrorCode, KafkaError
from broker.metadata.topics import duplicates
from broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from broker.server.broker import Broker
from broker.server.dispatch import RequestContext


def handle_create_partitions(
    broker: Broker, context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    """Change each topic for itself."""
    repeated = duplicates(topic.name for topic in request.topics)
    results = [
        _add(broker, topic, request.validate_only)
        for topic in request.topics
        if topic.name not in repeated
    ]
    results += [
        CreatePartitionsTopicResult(
            name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name."
        )
        for name in sorted(repeated)
    ]
    return CreatePartitionsResponse(results=results)


def _add(
    broker: Broker, topic: CreatePartitionsTopic, validate_only: bool
) -> CreatePartitionsTopicResult:
    try:
        broker.topics.add_partitions(topic, validate_only=validate_only)
    except KafkaError as error:
        return CreatePartitionsTopicResult(
            name=topic.name, error_code=error.code, error_message=error.message
        )
    return CreatePartitionsTopicResult(name=topic.name, error_message=None)
