"""The settings that a resource may have: its existence, and valid names and values."""

from collections.abc import Mapping

from broker.errors import ErrorCode, KafkaError
from broker.log.config import LogConfig
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

# Group settings (KIP-848): lowest and highest value, and the end of the broker settings' names.
GROUP_SETTINGS = {
    "consumer.heartbeat.interval.ms": (5_000, 15_000, "heartbeat.interval.ms"),
    "consumer.session.timeout.ms": (45_000, 60_000, "session.timeout.ms"),
    "consumer.assignment.interval.ms": (0, 15_000, "assignment.interval.ms"),
}


def validate_settings(view: ClusterView, resource: Resource, wanted: Mapping[str, str]) -> None:
    """Raise KafkaError if `resource` does not exist or cannot have all of `wanted`."""
    resource_type, name = resource
    if resource_type == TOPIC_RESOURCE:
        _validate_topic(view, name, wanted)
    elif resource_type == BROKER_RESOURCE:
        _validate_broker(view, name, wanted)
    elif resource_type == GROUP_RESOURCE:
        _validate_group(name, wanted)
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
        node_id = _whole(name)
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
    view.config.validate_broker_settings(wanted)


def _validate_group(name: str, wanted: Mapping[str, str]) -> None:
    if name == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    for key, text in wanted.items():
        if key not in GROUP_SETTINGS:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {key}")
        lowest, highest, limit = GROUP_SETTINGS[key]
        value = _number(key, text)
        if value < lowest:
            problem = f"greater than or equal to group.consumer.min.{limit}"
        elif value > highest:
            problem = f"less than or equal to group.consumer.max.{limit}"
        else:
            continue
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{key} must be {problem}")


def _number(key: str, text: str) -> int:
    value = _whole(text)
    if value is None:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Invalid value {text} for configuration {key}: Not a number of type INT",
        )
    return value


def _whole(text: str) -> int | None:
    """Return the integer in a short text of digits, None for other texts."""
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(2**31))
    return int(text) if is_number else None
