"""DescribeConfigs (key 32), versions 1-4: settings of topics and brokers.

v1 adds sources and synonyms (KIP-226), v3 types and documentation (KIP-569).
"""

from broker.errors import ErrorCode, KafkaError
from broker.metadata.topic_names import validate_topic_name
from broker.metadata.topics import TOPIC_RESOURCE
from broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from broker.server.broker import Broker
from broker.server.described_configs import DescribedConfig, describe_broker, describe_topic
from broker.server.dispatch import RequestContext
from broker.server.resources import validate_broker_name


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
        case 2:
            validate_topic_name(name)
            broker.cluster.topics.named(name)
            own = broker.cluster.configs.settings_of(TOPIC_RESOURCE, name)
            return describe_topic(broker.config, own)
        case 4:
            if name == "":
                return []  # the cluster-wide dynamic defaults: there are none
            validate_broker_name(broker, name)
            return describe_broker(broker.config)
        case _:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Unexpected resource type {resource.resource_type}"
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
