"""IncrementalAlterConfigs (key 44), versions 0-1: SET, DELETE, APPEND, SUBTRACT (KIP-339)."""

from broker.errors import ErrorCode, KafkaError
from broker.log.config import TOPIC_SETTINGS, LogConfig, SettingType, format_value
from broker.metadata.configs import apply_operation
from broker.metadata.topics import TOPIC_RESOURCE, duplicates
from broker.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from broker.server.broker import Broker
from broker.server.dispatch import RequestContext
from broker.server.resources import alterable_topic


def handle_incremental_alter_configs(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change each resource for itself, all its operations or none."""
    return IncrementalAlterConfigsResponse(
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
    if repeated := duplicates(config.name for config in resource.configs):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Duplicate config keys: {', '.join(sorted(repeated))}"
        )
    wanted = dict(broker.cluster.configs.settings_of(TOPIC_RESOURCE, image.name))
    for config in resource.configs:
        setting = TOPIC_SETTINGS.get(config.name)
        if setting is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {config.name}")
        wanted = apply_operation(
            wanted,
            name=config.name,
            operation=config.config_operation,
            value=config.value,
            default=format_value(getattr(broker.config.log, setting.field_name)) or "",
            is_list=setting.type == SettingType.LIST,
        )
    LogConfig.from_settings(wanted, broker.config.log)
    if not validate_only:
        broker.topics.change_settings(image, wanted)
