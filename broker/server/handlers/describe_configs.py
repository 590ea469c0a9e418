"""DescribeConfigs (key 32), versions 1-4: settings of topics and brokers.

v1 adds sources and synonyms (KIP-226), v3 types and documentation (KIP-569).
"""

from broker.errors import ErrorCode, KafkaError
from broker.metadata.topic_names import validate_topic_name
from broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from broker.server.broker import Broker
from broker.server.cluster import resources
from broker.server.cluster.described_configs import (
    DescribedConfig,
    describe_broker,
    describe_broker_defaults,
    describe_others,
    describe_topic,
)
from broker.server.cluster.resources import BROKER, TOPIC
from broker.server.network.dispatch import RequestContext


def handle_describe_configs(
    broker: Broker, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Describe each resource, or say why not."""
    return DescribeConfigsResponse(
        results=[_answer(broker, request, resource) for resource in request.resources]
    )


def _answer(
    broker: Broker, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        described = _describe(broker, resource)
    except KafkaError as error:
        result.error_code = error.code
        result.error_message = error.message
        return result
    wanted = set(resource.configuration_keys or ())  # none named: all
    result.configs = [
        _config(config, request) for config in described if not wanted or config.name in wanted
    ]
    return result


def _describe(broker: Broker, resource: DescribeConfigsResource) -> list[DescribedConfig]:
    name = resource.resource_name
    match resource.resource_type:
        case resources.TOPIC:
            validate_topic_name(name)
            broker.cluster.topics.named(name)
            own = broker.cluster.configs.settings_of(TOPIC, name)
            return describe_topic(broker.config, own)
        case resources.BROKER:
            for_all = broker.cluster.configs.settings_of(BROKER, "")
            if name == "":
                return describe_broker_defaults(for_all)
            _validate_broker_name(broker, name)
            own = broker.cluster.configs.settings_of(BROKER, name)
            return describe_broker(broker.dynamic_settings.static, for_all, own)
        case resources.CLIENT_METRICS | resources.GROUP:
            own = broker.cluster.configs.settings_of(resource.resource_type, name)
            return describe_others(resource.resource_type, own)
        case _:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Unexpected resource type {resource.resource_type}"
            )


def _validate_broker_name(broker: Broker, name: str) -> None:
    """Only a broker itself knows what its file says."""
    if name != str(broker.config.node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker.config.node_id} or empty string, but "
            f"received {name}",
        )


def _config(
    config: DescribedConfig, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=config.name,
        value=config.value,
        read_only=config.is_read_only,
        config_source=config.source,
        is_sensitive=config.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in config.synonyms
        ]
        if request.include_synonyms
        else [],
        config_type=config.config_type,
        documentation=config.documentation if request.include_documentation else None,
    )
