"""Clients of Kafka logged seldom while no broker can be reached.

A consumer of aiokafka logs some hundred lines a second without a broker: the same message is logged
once a minute here. librdkafka's consumers log twenty refused connections a second while they look
for a coordinator: what it says of one client under one facility (`FAIL`, `SESSTMOUT`) is logged
once a minute too.
"""

import logging
from collections.abc import Callable

from common.process.clock import now_seconds

QUIET_SECONDS = 60.0
MAX_REMEMBERED_MESSAGES = 1_000

_LIBRDKAFKA_FORMAT = "%s [%s] %s"
"""With which confluent-kafka logs what librdkafka says: facility, client, text."""


def quiet_clients() -> None:
    """Have this process log the same message of a client seldom."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(each, Seldom) for each in handler.filters):
            handler.addFilter(Seldom(now_seconds))


class Seldom(logging.Filter):
    """Lets a message of a Kafka client through once in QUIET_SECONDS; all others always.

    Messages of aiokafka are the same whatever their arguments; those of librdkafka are the same
    when facility and client are.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self._now = now
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        message = _message_of_client(record)
        if message is None:
            return True
        now = self._now()
        if now - self._last.get(message, -QUIET_SECONDS) < QUIET_SECONDS:
            return False
        if len(self._last) >= MAX_REMEMBERED_MESSAGES:
            self._last.clear()
        self._last[message] = now
        return True


def _message_of_client(record: logging.LogRecord) -> str | None:
    if record.name.startswith("aiokafka"):
        return str(record.msg)
    match record.msg, record.args:
        case str() as text, (facility, client, _) if text == _LIBRDKAFKA_FORMAT:
            return f"{facility} {client}"
    return None
