"""CreateTopics (key 19), versions 0-7. v5 describes what was created (KIP-525), v7 gives the id.

The answer goes out when the topic can be served.
"""

from broker.errors import ErrorCode, KafkaError
from broker.metadata.topics import CreatedTopic, duplicates
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from broker.server.broker import Broker
from broker.server.described_configs import describe_topic
from broker.server.dispatch import RequestContext


def handle_create_topics(
    broker: Broker, context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    """Create each topic for itself: one refusal does not touch the others."""
    repeated = duplicates(topic.name for topic in request.topics)
    results = [
        _create(broker, topic, request.validate_only)
        for topic in request.topics
        if topic.name not in repeated
    ]
    results += [
        CreatableTopicResult(
            name=name,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="Duplicate topic name.",
        )
        for name in sorted(repeated)
    ]
    return CreateTopicsResponse(topics=results)


def _create(broker: Broker, topic: CreatableTopic, validate_only: bool) -> CreatableTopicResult:
    try:
        created = broker.topics.create(topic, validate_only=validate_only)
    except KafkaError as error:
        return CreatableTopicResult(
            name=topic.name, error_code=error.code, error_message=error.message
        )
    return _describe(broker, topic, created, is_real=not validate_only)


def _describe(
    broker: Broker, topic: CreatableTopic, created: CreatedTopic, *, is_real: bool
) -> CreatableTopicResult:
    own = {config.name: config.value for config in topic.configs if config.value is not None}
    return CreatableTopicResult(
        name=topic.name,
        error_message=None,
        topic_id=created.topic_id if is_real else bytes(16),
        num_partitions=created.partition_count,
        replication_factor=created.replication_factor,
        configs=[
            CreatableTopicConfigs(
                name=config.name, value=config.value, config_source=config.source, read_only=False
            )
            for config in describe_topic(broker.config, own)
        ],
    )
