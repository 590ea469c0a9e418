"""AlterConfigs (key 33), versions 0-2: replace ALL settings of a resource (old: see KIP-339)."""

from broker.errors import ErrorCode, KafkaError
from broker.log.config import LogConfig
from broker.metadata.topics import duplicates
from broker.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from broker.server.broker import Broker
from broker.server.dispatch import RequestContext
from broker.server.resources import alterable_topic


def handle_alter_configs(
    broker: Broker, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    """Change each resource for itself."""
    return AlterConfigsResponse(
        responses=[
            _answer(broker, resource, request.validate_only) for resource in request.resources
        ]
    )


def _answer(
    broker: Broker, resource: AlterConfigsResource, validate_only: bool
) -> AlterConfigsResourceResponse:
    answer = AlterConfigsResourceResponse(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    answer.error_message = None
    try:
        _alter(broker, resource, validate_only)
    except KafkaError as error:
        answer.error_code = error.code
        answer.error_message = error.message
    return answer


def _alter(broker: Broker, resource: AlterConfigsResource, validate_only: bool) -> None:
    image = alterable_topic(broker, resource.resource_type, resource.resource_name)
    if duplicates(config.name for config in resource.configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    wanted: dict[str, str] = {}
    for config in resource.configs:
        if config.value is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Null value not supported for : {config.name}"
            )
        wanted[config.name] = config.value
    LogConfig.from_settings(wanted, broker.config.log)
    if not validate_only:
        broker.topics.change_settings(image, wanted)
