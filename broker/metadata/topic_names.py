"""Valid names of topics, and the names of internal topics."""

import re

from common.kafka.errors import ErrorCode, KafkaError

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
CLUSTER_METADATA = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})

MAX_NAME_CHARACTERS = 249
_legal = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII).fullmatch


def validate_topic_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION unless `name` is legal (Kafka's Topic.validate)."""
    if name == "":
        problem = "the empty string is not allowed"
    elif name in {".", ".."}:
        problem = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_CHARACTERS:
        problem = (
            f"the length of '{name}' is longer than the max allowed length {MAX_NAME_CHARACTERS}"
        )
    elif not _legal(name):
        problem = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'"
        )
    elif name == CLUSTER_METADATA:
        problem = f"{CLUSTER_METADATA} is the cluster's own log"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def code_of_unknown(name: str) -> ErrorCode:
    """Return the error for a topic that does not exist: another one if its name is not valid."""
    try:
        validate_topic_name(name)
    except KafkaError as error:
        # The metadata log has a valid name but is not a topic for clients.
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if name == CLUSTER_METADATA else error.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def collision_key(name: str) -> str:
    """Return a key that is equal for names that collide in the names of metrics (a.b and a_b)."""
    return name.replace(".", "_")
