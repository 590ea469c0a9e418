"""Creates clients of confluent-kafka from Kafka's settings, and prints their errors."""

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, ShareConsumer

from broker.cli.arguments import ToolFailed
from broker.cli.clients.settings import (
    set_consumer_defaults,
    set_producer_defaults,
    translate,
)
from broker.server.clock import Clock, SystemClock
from common.kafka.client.exchange import parse_addresses

AGAIN_AFTER_MS = 10_000
TOLD_AS_ERRORS = ("FAIL ", "ERROR ")
NEVER_TOLD = ("SHARECONSUMER ",)  # Every share consumer of the library says that it is new.
_CLOSED_AT_ONCE = "in state APIVERSION_QUERY"
Client = TypeVar("Client", Consumer, Producer, ShareConsumer)
Callbacks = dict[str, Callable[..., Any]]
UNKNOWN_SETTING = re.compile('No such configuration property: "([^"]+)"')


def make_producer(settings: Mapping[str, str], more: Callbacks | None = None) -> Producer:
    """Return a producer, with the library's callbacks; raise ToolFailed for invalid settings."""
    own = dict(settings)
    set_producer_defaults(own)
    return _made(Producer, own, more)


def make_consumer(settings: Mapping[str, str], more: Callbacks | None = None) -> Consumer:
    """Return a consumer, with the library's callbacks; raise ToolFailed for invalid settings."""
    own = dict(settings)
    set_consumer_defaults(own)
    return _made(Consumer, own, more)


def make_share_consumer(
    settings: Mapping[str, str], more: Callbacks | None = None
) -> ShareConsumer:
    """Return a share consumer, with the library's callbacks, as the others."""
    return _made(ShareConsumer, settings, more)


def _made(
    kind: Callable[[dict[str, Any]], Client], settings: Mapping[str, str], more: Callbacks | None
) -> Client:
    """Create a client without the settings that the library does not know, with a warning.

    Raise KafkaError for invalid addresses: the library would try to resolve them for ever.
    """
    parse_addresses(settings.get("bootstrap.servers", ""))
    known: dict[str, Any] = translate(settings) | (more or {})
    while True:
        try:
            return kind({**known, "error_cb": tell_error, "logger": _LOGGER})
        except KafkaException as error:
            unknown = UNKNOWN_SETTING.search(_text(error))
            if unknown is None or unknown[1] not in known:
                raise ToolFailed(_text(error)) from error
            warn(f"The configuration '{unknown[1]}' was supplied but isn't known: it is ignored.")
            del known[unknown[1]]


@contextmanager
def told() -> Iterator[None]:
    """Raise the library's errors as ToolFailed."""
    try:
        yield
    except KafkaException as error:
        raise ToolFailed(_text(error)) from error
    except SystemError as error:
        # confluent-kafka raises a fatal error while it reports a delivery: the report fails so.
        if not isinstance(error.__cause__, KafkaException):
            raise
        raise ToolFailed(_text(error.__cause__)) from error


def _text(error: KafkaException) -> str:
    (cause,) = error.args
    return error_text(cause) if isinstance(cause, KafkaError) else str(cause)


def error_text(error: KafkaError) -> str:
    """Return the text of a library error on one line."""
    return f"{error.name()}: {error.str()}".rstrip(": ")


def tell_error(error: KafkaError) -> None:
    """Print an error of a client, which retries by itself."""
    _TELLER.tell(error_text(error))


def warn(text: str) -> None:
    """Print a warning."""
    print(f"WARN {text}", file=sys.stderr, flush=True)


def check_received(error: KafkaError) -> None:
    """Print an error that a consumer received instead of a record, for it may pass.

    Raise ToolFailed for one that does not pass, as a right that is missing: Kafka's consumers end
    with it too.
    """
    lacks_right = error.code() in (
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    )
    if error.fatal() or lacks_right:
        raise ToolFailed(error_text(error))
    warn(error_text(error))


class Teller:
    """Prints a repeated error at most every ten seconds, because the library retries often."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told_ms: dict[str, int] = {}

    def tell(self, text: str) -> None:
        kind = re.sub(r"\d+", "#", text)
        now_ms = self._clock.now_ms()
        if now_ms - self._told_ms.get(kind, -AGAIN_AFTER_MS) >= AGAIN_AFTER_MS:
            self._told_ms[kind] = now_ms
            warn(text)


class _LogLines(logging.Handler):
    """Prints the lines of the library's log, without those that are reported as errors too."""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if _CLOSED_AT_ONCE in text:
            _TELLER.tell(
                "the connection was closed at its first request: perhaps this listener speaks TLS "
                "(security.protocol=SSL or SASL_SSL)"
            )
        elif record.levelno >= logging.WARNING and not text.startswith(TOLD_AS_ERRORS + NEVER_TOLD):
            _TELLER.tell(text)


_TELLER = Teller(SystemClock())
_LOGGER = logging.getLogger("librdkafka")
_LOGGER.setLevel(logging.INFO)
_LOGGER.propagate = False
_LOGGER.addHandler(_LogLines())


def last_statistics(statistics: list[str], poll: Callable[[], object]) -> dict[str, object]:
    """Return a client's next statistics; `poll` lets the client report them."""
    statistics.clear()
    while not statistics:
        poll()
    found: dict[str, object] = json.loads(statistics[-1])
    return found
