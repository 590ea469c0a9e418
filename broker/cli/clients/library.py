"""Makes clients of confluent-kafka from Kafka's settings, and tells their errors as a tool does."""

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from broker.cli.arguments import ToolFailed
from broker.cli.clients.settings import (
    set_consumer_defaults,
    set_producer_defaults,
    translate,
)

Client = TypeVar("Client", Consumer, Producer)
UNKNOWN_SETTING = re.compile('No such configuration property: "([^"]+)"')


def make_producer(settings: Mapping[str, str]) -> Producer:
    """Make a producer; raises ToolFailed for settings that cannot be meant."""
    own = dict(settings)
    set_producer_defaults(own)
    return _made(Producer, own)


def make_consumer(settings: Mapping[str, str]) -> Consumer:
    """Make a consumer; raises ToolFailed for settings that cannot be meant."""
    own = dict(settings)
    set_consumer_defaults(own)
    return _made(Consumer, own)


def _made(kind: Callable[[dict[str, Any]], Client], settings: Mapping[str, str]) -> Client:
    """Leave out what the library does not know, and say so, as Kafka's clients do."""
    known: dict[str, Any] = dict(translate(settings))
    while True:
        try:
            return kind({**known, "error_cb": tell_error})
        except KafkaException as error:
            unknown = UNKNOWN_SETTING.search(_text(error))
            if unknown is None or unknown[1] not in known:
                raise ToolFailed(_text(error)) from error
            warn(f"The configuration '{unknown[1]}' was supplied but isn't known: it is ignored.")
            del known[unknown[1]]


def _text(error: KafkaException) -> str:
    (cause,) = error.args
    return error_text(cause) if isinstance(cause, KafkaError) else str(cause)


def error_text(error: KafkaError) -> str:
    """Give an error of the library on one line."""
    return f"{error.name()}: {error.str()}"


def tell_error(error: KafkaError) -> None:
    """Tell what goes wrong within a client, which goes on trying."""
    warn(error_text(error))


def warn(text: str) -> None:
    """Tell something that does not end the tool."""
    print(f"WARN {text}", file=sys.stderr, flush=True)
