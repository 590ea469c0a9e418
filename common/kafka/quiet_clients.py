"""aiokafka's clients made calm while no broker can be reached.

aiokafka 0.14's `AIOKafkaClient._md_synchronizer` repeats a metadata update at once when the set of
topics has changed while an update failed. Without a broker each attempt fails within a millisecond,
so the client keeps half a processor busy and logs a thousand lines a second until a broker is back.
Every failed update is followed by a pause here, and the same message of aiokafka is logged once a
minute. Upstream, the cure is one line: sleep for `retry_backoff_ms` before that `continue`.

librdkafka's consumers log twenty refused connections a second while they look for a coordinator:
what it says of one client under one facility (`FAIL`, `SESSTMOUT`) is logged once a minute too.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiokafka.client import AIOKafkaClient

from common.process.clock import now_seconds

PAUSE_SECONDS = 0.5
QUIET_SECONDS = 60.0
MAX_REMEMBERED_MESSAGES = 1_000

_LIBRDKAFKA_FORMAT = "%s [%s] %s"
"""With which confluent-kafka logs what librdkafka says: facility, client, text."""

_update_at_once = AIOKafkaClient._metadata_update  # noqa: SLF001 - the fault is in this method's caller


def calm_aiokafka() -> None:
    """Have every client of this process pause after a failed update, and log it seldom."""
    AIOKafkaClient._metadata_update = _update_and_pause  # noqa: SLF001
    for handler in logging.getLogger().handlers:
        if not any(isinstance(each, Seldom) for each in handler.filters):
            handler.addFilter(Seldom(now_seconds))


async def _update_and_pause(client: AIOKafkaClient, metadata: Any, topics: Any) -> bool:
    updated: bool = await _update_at_once(client, metadata, topics)
    if not updated:
        await asyncio.sleep(PAUSE_SECONDS)
    return updated


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
