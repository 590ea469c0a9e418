"""The APIs that belong to a feature: UNSUPPORTED_VERSION while the feature is disabled.

As in Kafka the refusal comes first: before the rights of the requester are looked at, and at every
broker, whether it coordinates the group or not. ApiVersions lists the APIs all the same.
"""

from collections.abc import Callable, Mapping
from typing import Any

from broker.metadata.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from broker.server.network.dispatch import Answer, Handler, RequestContext
from broker.server.network.later import Steps
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import response_class
from common.kafka.protocol.message import Message

FEATURE_OF: dict[int, str] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: GROUP_VERSION,
    ApiKey.CONSUMER_GROUP_DESCRIBE: GROUP_VERSION,
    ApiKey.STREAMS_GROUP_HEARTBEAT: STREAMS_VERSION,
    ApiKey.STREAMS_GROUP_DESCRIBE: STREAMS_VERSION,
    ApiKey.SHARE_GROUP_HEARTBEAT: SHARE_VERSION,
    ApiKey.SHARE_GROUP_DESCRIBE: SHARE_VERSION,
    ApiKey.SHARE_FETCH: SHARE_VERSION,
    ApiKey.SHARE_ACKNOWLEDGE: SHARE_VERSION,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: SHARE_VERSION,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: SHARE_VERSION,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: SHARE_VERSION,
}


def gated(api_key: int, handler: Handler, features: Callable[[], Mapping[str, int]]) -> Handler:
    """Return the handler of an API, which runs only while its feature, if any, is enabled."""
    feature = FEATURE_OF.get(api_key)
    if feature is None:
        return handler

    def handle(context: RequestContext, request: Any) -> Answer | Steps[Answer]:
        if features().get(feature, 0) < 1:
            return _refusal(api_key, request)
        return handler(context, request)

    return handle


def _refusal(api_key: int, request: Any) -> Message:
    """Return the answer if it has an error for each group, else raise UNSUPPORTED_VERSION."""
    response: Any = response_class(api_key)()
    groups = response.__fields__.get("groups")
    if groups is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The version of API is not supported.")
    named = getattr(request, "group_ids", None)
    for group_id in [group.group_id for group in request.groups] if named is None else named:
        answer = groups.element(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
        response.groups.append(answer)
    assert isinstance(response, Message)
    return response
