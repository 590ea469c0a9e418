"""Turns Kafka's errors into refusals, by error code and with the reason, and a late answer too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
    RequestTimedOutError,
    for_code,
)

from common.kafka import errors
from rest_proxy.refusals import (
    GROUP_NOT_FOUND,
    ILLEGAL_STATE,
    INSTANCE_NOT_FOUND,
    KAFKA_ERROR,
    KAFKA_REFUSED,
    KAFKA_RETRIABLE,
    PARTITION_NOT_FOUND,
    TOPIC_NOT_FOUND,
    UNAUTHENTICATED,
    UNAUTHORIZED,
    RestError,
)

BROKER_NOT_AVAILABLE: Final = 50302
_NO_ANSWER: Final = (KafkaConnectionError, NodeNotReadyError, RequestTimedOutError, OSError)
_TIMED_OUT: Final = -192
_NOT_STORED: Final = (
    "Kafka did not store the record in time (producer.delivery.timeout.ms): no broker could be "
    "reached, or none could write it. It may still be stored."
)
_BY_CODE: Final = {
    # Confluent's proxy answers with the code of a missing instance here.
    3: INSTANCE_NOT_FOUND,  # UNKNOWN_TOPIC_OR_PARTITION
    10: 413,  # MESSAGE_TOO_LARGE
    17: KAFKA_REFUSED,  # INVALID_TOPIC_EXCEPTION
    24: KAFKA_REFUSED,  # INVALID_GROUP_ID
    29: UNAUTHORIZED,
    30: UNAUTHORIZED,
    31: UNAUTHORIZED,
    34: UNAUTHENTICATED,
    35: KAFKA_REFUSED,  # UNSUPPORTED_VERSION
    36: KAFKA_REFUSED,  # TOPIC_ALREADY_EXISTS
    37: KAFKA_REFUSED,
    38: KAFKA_REFUSED,
    39: KAFKA_REFUSED,
    40: KAFKA_REFUSED,  # INVALID_CONFIG
    42: KAFKA_REFUSED,  # INVALID_REQUEST
    44: KAFKA_REFUSED,  # POLICY_VIOLATION
    54: KAFKA_REFUSED,  # SECURITY_DISABLED: no authorizer
    58: UNAUTHENTICATED,
    60: KAFKA_REFUSED,  # REASSIGNMENT_IN_PROGRESS
    68: ILLEGAL_STATE,  # NON_EMPTY_GROUP
    69: GROUP_NOT_FOUND,
    87: KAFKA_REFUSED,  # INVALID_RECORD
    # librdkafka's own.
    -169: UNAUTHENTICATED,
    -184: 42901,
    -185: BROKER_NOT_AVAILABLE,
    -186: KAFKA_REFUSED,  # an argument
    -187: BROKER_NOT_AVAILABLE,
    -188: TOPIC_NOT_FOUND,
    -190: PARTITION_NOT_FOUND,
    _TIMED_OUT: KAFKA_RETRIABLE,
    -193: BROKER_NOT_AVAILABLE,
    -195: BROKER_NOT_AVAILABLE,
}


def refusal_of_code(code: int, message: str = "") -> RestError:
    """Return the refusal of one of Kafka's error codes; negative ones are librdkafka's."""
    known = for_code(code) if code >= 0 else None
    reason = message or str(getattr(known, "description", "")) or f"Kafka error {code}"
    ours = _BY_CODE.get(code)
    if ours is None:
        ours = KAFKA_RETRIABLE if known is not None and known.retriable else KAFKA_ERROR
    return RestError(ours, reason)


def refusal_of(error: Any) -> RestError:
    """Return the refusal for an error that a client raised or reported."""
    if isinstance(error, _NO_ANSWER):
        reason = str(error) or type(error).__name__
        return RestError(BROKER_NOT_AVAILABLE, f"Kafka cannot be reached: {reason}")
    if isinstance(error, KafkaError):
        detail = str(error.args[0]) if error.args else ""
        return refusal_of_code(error.errno, detail or str(error))
    if isinstance(error, errors.KafkaError):
        return refusal_of_code(error.code, error.message or str(for_code(error.code)()))
    reported = error if hasattr(error, "code") else error.args[0]
    if not hasattr(reported, "code"):
        return RestError(KAFKA_ERROR, str(error))
    code = reported.code()
    return refusal_of_code(code, _NOT_STORED if code == _TIMED_OUT else reported.str())


KAFKA_SECONDS: Final = 10.0
"""The longest time that a question may take."""


@asynccontextmanager
async def bounded(seconds: float = KAFKA_SECONDS) -> AsyncIterator[None]:
    """Raise RestError, 503, if the body is not through after some seconds."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise RestError(
            BROKER_NOT_AVAILABLE, f"Kafka did not answer within {seconds:g} seconds."
        ) from None
