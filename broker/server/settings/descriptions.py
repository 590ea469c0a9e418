"""DescribeConfigs (key 32), versions 1-4: settings of topics and nodes, at brokers and controllers.

v1 adds sources and synonyms (KIP-226), v3 types and documentation (KIP-569).
"""

from typing import Protocol

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic_settings import with_dynamic_settings
from broker.config.sources import base_of
from broker.metadata.topic_names import validate_topic_name
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.cluster.request_entries import distinct
from broker.server.network.dispatch import RequestContext
from broker.server.network.later import Steps
from broker.server.settings import config_entries
from broker.server.settings.config_entries import (
    BROKER,
    TOPIC,
    DescribedConfig,
    describe_broker,
    describe_broker_defaults,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from broker.server.settings.log_levels import describe_loggers
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


class NodeSettings(Protocol):
    """The settings of this node: those of its file, and those with the metadata's changes."""

    @property
    def static(self) -> BrokerConfig:
        """The settings of the file."""

    @property
    def current(self) -> BrokerConfig:
        """The settings with the metadata's changes."""


class ControllerSettings:
    """The settings of a node that follows no changes of its own: it only describes them."""

    def __init__(self, static: BrokerConfig, metadata: ClusterMetadata) -> None:
        self.static = static
        self._metadata = metadata

    @property
    def current(self) -> BrokerConfig:
        """The settings of the file, with the metadata's changes."""
        settings_of = self._metadata.image.configs.settings_of
        for_all, own = settings_of(BROKER, ""), settings_of(BROKER, str(self.static.node_id))
        try:
            return with_dynamic_settings(self.static, for_all, own)
        except KafkaError:  # As a broker does: an invalid combination has no effect.
            return self.static


class SettingsDescriptions:
    """Describes the settings of this node, and all settings that are in the metadata."""

    def __init__(self, settings: NodeSettings, metadata: ClusterMetadata) -> None:
        self._settings = settings
        self._metadata = metadata

    def handle(self, context: RequestContext, request: DescribeConfigsRequest) -> Steps[Message]:
        """Describe each resource once, or answer with its error.

        Kafka repeats the answer for a resource that is named again, with hundreds of bytes each.
        """
        wanted = distinct(
            request.resources, lambda resource: (resource.resource_type, resource.resource_name)
        )
        results: list[DescribeConfigsResult] = []
        for resource in wanted:
            results.append(self._answer(request, resource))
            yield None
        return DescribeConfigsResponse(results=results)

    def _answer(
        self, request: DescribeConfigsRequest, resource: DescribeConfigsResource
    ) -> DescribeConfigsResult:
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        wanted = set(resource.configuration_keys or ())  # none named: all
        try:
            described = self._describe(resource, wanted)
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
            return result
        result.configs = [
            _config(config, request) for config in described if not wanted or config.name in wanted
        ]
        return result

    def _describe(
        self, resource: DescribeConfigsResource, wanted: set[str]
    ) -> list[DescribedConfig]:
        name = resource.resource_name
        configs = self._metadata.image.configs
        match resource.resource_type:
            case config_entries.TOPIC:
                validate_topic_name(name)
                self._metadata.image.topics.named(name)
                own = configs.settings_of(TOPIC, name)
                return describe_topic(self._settings.current, own, wanted)
            case config_entries.BROKER:
                for_all = configs.settings_of(BROKER, "")
                if name == "":
                    return describe_broker_defaults(for_all)
                self._validate_broker_name(name)
                own = configs.settings_of(BROKER, name)
                return describe_broker(self._settings.static, for_all, own)
            case config_entries.BROKER_LOGGER:
                self._validate_broker_name(name)
                return describe_loggers()
            case config_entries.CLIENT_METRICS:
                _check_named(name, "Client metrics subscription")
                return describe_client_metrics(
                    configs.settings_of(config_entries.CLIENT_METRICS, name)
                )
            case config_entries.GROUP:
                _check_named(name, "Group")
                return describe_group(
                    self._settings.static,
                    configs.settings_of(BROKER, ""),
                    configs.settings_of(BROKER, str(self._settings.static.node_id)),
                    configs.settings_of(config_entries.GROUP, name),
                )
            case _:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Unexpected resource type {resource.resource_type}"
                )

    def _validate_broker_name(self, name: str) -> None:
        """Describe a broker: only the broker itself knows the settings in its file."""
        node_id = self._settings.static.node_id
        if name != str(node_id):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {node_id} or empty string, but received {name}",
            )


def _check_named(name: str, what: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{what} name must not be empty")


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
        documentation=_documentation(config) if request.include_documentation else None,
    )


def _documentation(config: DescribedConfig) -> str | None:
    """Return a setting's documentation, or that of the broker's setting for it."""
    if config.documentation is not None:
        return config.documentation
    from broker.config.setting_documentation import DOCUMENTATION  # large, and rarely requested

    name = base_of(config.name) or config.name
    return DOCUMENTATION.get(name) or DOCUMENTATION.get(f"group.{name}")
