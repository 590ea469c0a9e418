"""The settings that a resource may have: its existence, and valid names and values."""

from collections.abc import Mapping

from broker.log.config import LogConfig
from broker.metadata.control.group_limits import validate_group, whole_number
from broker.metadata.control.settings.client_metrics import validate_client_metrics
from broker.metadata.control.view import ClusterView
from broker.metadata.parts.configs import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    Resource,
)
from broker.metadata.topic_names import validate_topic_name
from common.kafka.errors import ErrorCode, KafkaError


def validate_settings(view: ClusterView, resource: Resource, wanted: Mapping[str, str]) -> None:
    """Raise KafkaError if `resource` does not exist or cannot have all of `wanted`."""
    resource_type, name = resource
    if resource_type == TOPIC_RESOURCE:
        _validate_topic(view, name, wanted)
    elif resource_type == BROKER_RESOURCE:
        _validate_broker(view, name, wanted)
    elif resource_type == GROUP_RESOURCE:
        validate_group(name, wanted, view.config.group_limits)
    elif resource_type == CLIENT_METRICS_RESOURCE:
        validate_client_metrics(name, wanted)
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def _validate_topic(view: ClusterView, name: str, wanted: Mapping[str, str]) -> None:
    if name == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    validate_topic_name(name)
    if name not in view.image.topics.by_name:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )
    LogConfig.from_settings(wanted, view.config.log)


def _validate_broker(view: ClusterView, name: str, wanted: Mapping[str, str]) -> None:
    if name != "":
        node_id = whole_number(name)
        if node_id is None:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."
            )
        if node_id < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
        known = {view.config.node_id, *view.image.brokers, *view.image.controllers}
        if node_id not in known:
            raise KafkaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found."
            )
    view.config.validate_broker_settings(wanted, is_for_all=name == "")
