"""Resources that settings belong to: which numbers and names a request may use."""

from typing import TYPE_CHECKING

from broker.errors import ErrorCode, KafkaError
from broker.metadata.image import TopicImage

if TYPE_CHECKING:
    from broker.server.broker import Broker

TOPIC = 2
BROKER = 4


def validate_broker_name(broker: "Broker", name: str) -> None:
    """Raise INVALID_REQUEST unless `name` is the id of this broker."""
    if name != str(broker.config.node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker.config.node_id} or empty string, but "
            f"received {name}",
        )


def alterable_topic(broker: "Broker", resource_type: int, name: str) -> TopicImage:
    """Return the topic whose settings a request wants to change; raises KafkaError."""
    if resource_type == BROKER:
        validate_broker_name(broker, name or str(broker.config.node_id))
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "The settings of this broker are read-only: change its configuration and restart it",
        )
    if resource_type != TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {resource_type}")
    return broker.cluster.topics.named(name)
