"""Requests for the settings of topics, brokers, groups and client metrics.

A request for a broker's own settings goes to that broker: only it knows those of its file.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from common.kafka.admin.client import AdminClient, To, raise_for
from common.kafka.protocol.messages import describe_configs, incremental_alter_configs
from common.kafka.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


class ResourceType(IntEnum):
    """The types of resources with settings, with Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """The source of a value, with Kafka's numbers and the names that its tools print."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class Operation(IntEnum):
    """The operations of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1


class Resource(NamedTuple):
    """A resource with settings; the empty name of a broker is the default of all brokers."""

    kind: ResourceType
    name: str


class ConfigEntry(NamedTuple):
    """One setting with its synonyms, the one with the highest precedence first."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    synonyms: list[tuple[ConfigSource, str, str | None]]
    is_read_only: bool


def describe(client: AdminClient, resource: Resource, *, with_synonyms: bool) -> list[ConfigEntry]:
    """Return the settings of one resource, in the order of the answer."""
    return describe_all(client, [resource], with_synonyms=with_synonyms)[resource]


def describe_all(
    client: AdminClient,
    resources: Iterable[Resource],
    *,
    with_synonyms: bool = False,
    names: Iterable[str] | None = None,
) -> dict[Resource, list[ConfigEntry]]:
    """Return the settings of several resources, all of them or those with certain names."""
    keys = None if names is None else sorted(names)
    found: dict[Resource, list[ConfigEntry]] = {}
    for to, part in _by_node(client, resources).items():
        request = describe_configs.DescribeConfigsRequest(
            resources=[
                describe_configs.DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=keys
                )
                for kind, name in part
            ],
            include_synonyms=with_synonyms,
        )
        response = client.ask(request, describe_configs.DescribeConfigsResponse, to)
        for result in response.results:
            raise_for(result.error_code, result.error_message)
            resource = Resource(ResourceType(result.resource_type), result.resource_name)
            found[resource] = [_entry(config) for config in result.configs]
    return found


def alter(client: AdminClient, changes: Mapping[Resource, Mapping[str, str | None]]) -> None:
    """Set settings, or delete those whose value is None; atomic for each resource."""
    for to, part in _by_node(client, changes).items():
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=resource.kind,
                    resource_name=resource.name,
                    configs=[_alterable(name, value) for name, value in changes[resource].items()],
                )
                for resource in part
            ]
        )
        response = client.ask(
            request, incremental_alter_configs.IncrementalAlterConfigsResponse, to
        )
        for result in response.responses:
            raise_for(result.error_code, result.error_message)


def list_resources(client: AdminClient, kind: ResourceType) -> list[str]:
    """Return the names of the resources of a type that have settings."""
    is_metrics = kind == ResourceType.CLIENT_METRICS  # the only type in version 0
    request = ListConfigResourcesRequest(resource_types=[] if is_metrics else [kind])
    response = client.ask(request, ListConfigResourcesResponse)
    raise_for(response.error_code)
    return sorted(
        found.resource_name for found in response.config_resources if found.resource_type == kind
    )


def _by_node(client: AdminClient, resources: Iterable[Resource]) -> dict[To | int, list[Resource]]:
    grouped: dict[To | int, list[Resource]] = {}
    for resource in resources:
        is_own = resource.kind in {ResourceType.BROKER, ResourceType.BROKER_LOGGER}
        is_of_one = is_own and resource.name and not client.settings.is_controller_bootstrap
        to: To | int = int(resource.name) if is_of_one else To.ANY_NODE
        grouped.setdefault(to, []).append(resource)
    return grouped


def _entry(config: describe_configs.DescribeConfigsResourceResult) -> ConfigEntry:
    synonyms = [
        (ConfigSource(synonym.source), synonym.name, synonym.value) for synonym in config.synonyms
    ]
    source = ConfigSource(max(config.config_source, 0))
    return ConfigEntry(
        config.name, config.value, source, config.is_sensitive, synonyms, config.read_only
    )


def _alterable(name: str, value: str | None) -> incremental_alter_configs.AlterableConfig:
    operation = Operation.DELETE if value is None else Operation.SET
    return incremental_alter_configs.AlterableConfig(
        name=name, config_operation=operation, value=value
    )
