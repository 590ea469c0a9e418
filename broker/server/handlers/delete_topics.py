"""DeleteTopics (key 20), versions 0-6. v6 names topics by name or id (KIP-516)."""

from broker.errors import ErrorCode, KafkaError
from broker.metadata.image import TopicImage
from broker.metadata.topics import duplicates
from broker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from broker.server.broker import Broker
from broker.server.dispatch import RequestContext

FIRST_VERSION_WITH_TOPIC_IDS = 6
FIRST_VERSION_WITH_DELETION_DISABLED = 3


def handle_delete_topics(
    broker: Broker, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """Delete each topic for itself; the answer goes out when it is gone from the metadata."""
    if context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS:
        wanted = list(request.topics)
    else:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    repeated = duplicates(state.name for state in wanted if state.name is not None)
    once = [state for state in wanted if state.name not in repeated]
    return DeleteTopicsResponse(
        responses=[_delete(broker, context, state) for state in once]
        + [_refused_as_repeated(name) for name in sorted(repeated)]
    )


def _refused_as_repeated(name: str) -> DeletableTopicResult:
    return DeletableTopicResult(
        name=name, error_code=ErrorCode.INVALID_REQUEST, error_message="Duplicate topic name."
    )


def _delete(
    broker: Broker, context: RequestContext, state: DeleteTopicState
) -> DeletableTopicResult:
    try:
        image = _find(broker, context, state)
        broker.topics.delete(image)
    except KafkaError as error:
        return DeletableTopicResult(
            name=state.name,
            topic_id=state.topic_id,
            error_code=error.code,
            error_message=error.message,
        )
    return DeletableTopicResult(name=image.name, topic_id=image.topic_id)


def _find(broker: Broker, context: RequestContext, state: DeleteTopicState) -> TopicImage:
    if not broker.config.delete_topic:
        is_known = context.api_version >= FIRST_VERSION_WITH_DELETION_DISABLED
        code = ErrorCode.TOPIC_DELETION_DISABLED if is_known else ErrorCode.INVALID_REQUEST
        raise KafkaError(code, "Topic deletion is disabled.")
    if state.name is None:
        if state.topic_id == bytes(16):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        image = broker.cluster.topics.by_id.get(state.topic_id)
        if image is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return image
    if state.topic_id != bytes(16):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and id.")
    return broker.cluster.topics.named(state.name)
