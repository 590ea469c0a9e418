"""Refusals: the status and the body {error_code, message} that a caller gets.

The codes are those of Confluent's REST proxy, which its clients compare. Every message names the
error and, if it is known, the remedy.
"""

from typing import Final

TOPIC_NOT_FOUND: Final = 40401
PARTITION_NOT_FOUND: Final = 40402
INSTANCE_NOT_FOUND: Final = 40403
GROUP_NOT_FOUND: Final = 40405
KAFKA_REFUSED: Final = 40002
UNAUTHENTICATED: Final = 40101
UNAUTHORIZED: Final = 40301
ILLEGAL_STATE: Final = 40903
KAFKA_ERROR: Final = 50002
KAFKA_RETRIABLE: Final = 50003
_CODES_OF_A_STATUS: Final = 100


class RestError(Exception):
    """A refusal. `error_code` is a status, or a status with two more digits."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code

    @property
    def status(self) -> int:
        """Return the HTTP status."""
        code = self.error_code
        return code if code < 1000 else code // _CODES_OF_A_STATUS

    def body(self) -> dict[str, object]:
        """Return the body for the caller."""
        return {"error_code": self.error_code, "message": str(self)}


def bad_request(message: str) -> RestError:
    """Return the refusal of a body or a parameter that cannot be read."""
    return RestError(400, message)


def not_found(message: str = "HTTP 404 Not Found") -> RestError:
    """Return the refusal of an unknown path."""
    return RestError(404, message)


def topic_not_found(topic: str) -> RestError:
    return RestError(TOPIC_NOT_FOUND, f"Topic {topic} not found.")


def partition_not_found(topic: str, partition: int) -> RestError:
    return RestError(PARTITION_NOT_FOUND, f"Partition {partition} of topic {topic} not found.")


def cluster_not_found(cluster_id: str) -> RestError:
    return RestError(404, f"Cluster {cluster_id} cannot be found.")


def group_not_found(group_id: str) -> RestError:
    return RestError(GROUP_NOT_FOUND, f"Consumer group {group_id} cannot be found.")


def instance_not_found(group_id: str, name: str) -> RestError:
    return RestError(
        INSTANCE_NOT_FOUND,
        f"Consumer instance {name} of group {group_id} not found: it was deleted, it expired, or "
        "it lives in another REST proxy. An instance lives in the memory of the proxy that made "
        "it; behind a load balancer, use its base_uri.",
    )


def format_mismatch(wanted: str, own: str) -> RestError:
    return RestError(
        40601,
        f"The requested format {wanted} does not match the format {own} of this consumer instance.",
    )


def instance_exists(group_id: str, name: str) -> RestError:
    return RestError(40902, f"Consumer instance {name} of group {group_id} already exists.")


def illegal_state(message: str) -> RestError:
    return RestError(ILLEGAL_STATE, message)


def key_schema_missing() -> RestError:
    return RestError(42201, "The request has keys and names neither key_schema nor key_schema_id.")


def value_schema_missing() -> RestError:
    return RestError(
        42202, "The request has values and names neither value_schema nor value_schema_id."
    )


def not_of_schema(message: str) -> RestError:
    """Return the refusal of JSON that does not convert to its schema."""
    return RestError(42203, f"Conversion of JSON to the schema failed: {message}")


def bad_consumer_setting(message: str) -> RestError:
    return RestError(42204, f"Invalid consumer configuration: {message}")


def bad_schema(message: str) -> RestError:
    return RestError(42205, f"Invalid schema: {message}")


def bad_payload(message: str) -> RestError:
    return RestError(42206, f"Payload error: {message}")


def not_serializable(message: str) -> RestError:
    return RestError(42207, f"Data cannot be converted: {message}")


def not_registered(message: str) -> RestError:
    """Return the refusal of a schema that the registry finds incompatible."""
    return RestError(42207, f"The schema cannot be registered: {message}")


def bad_batch(message: str) -> RestError:
    return RestError(42208, f"Invalid batch: {message}")


def registry_failed(message: str) -> RestError:
    return RestError(40801, f"Schema registry: {message}")


def too_large(limit_bytes: int) -> RestError:
    return RestError(413, f"The body is larger than {limit_bytes} bytes.")


def wrong_media_type(given: str, expected: str) -> RestError:
    return RestError(415, f"Content-Type {given or '(none)'} is not supported here: use {expected}")
