"""Sends what clients push to an OTLP endpoint over HTTP (opentelemetry.io/docs/specs/otlp).

Pushes wait in a queue that is bounded in bytes; one that does not fit, or that the endpoint does
not take, is dropped and counted, so that a slow endpoint costs the broker nothing. A problem is
logged once per LOG_INTERVAL_SECONDS.

The HTTP client is imported when the first push is sent.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from common.process.tasks import spawn

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger("millstream.telemetry")

MAX_QUEUED_BYTES: Final = 16 * 1024 * 1024
SEND_TIMEOUT_SECONDS: Final = 10.0
LOG_INTERVAL_SECONDS: Final = 60.0
HEADERS: Final = {"content-type": "application/x-protobuf"}


class OtlpForwarder:
    """Owns the queue and the task that empties it, which runs while there is something to send."""

    def __init__(self, endpoint: str, now: Callable[[], float]) -> None:
        self.endpoint = endpoint
        self.sent_count = 0
        self.dropped_count = 0
        self._now = now
        self._logged_at = -LOG_INTERVAL_SECONDS
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._task: asyncio.Task[None] | None = None

    def send(self, body: bytes) -> None:
        """Queue a push; drop it if the queue is full."""
        if self._queued_bytes + len(body) > MAX_QUEUED_BYTES:
            self._drop("the queue is full")
            return
        self._queue.append(body)
        self._queued_bytes += len(body)
        if self._task is None:
            self._task = spawn(self._empty_queue())

    def stop(self) -> None:
        """Drop what waits."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _empty_queue(self) -> None:
        import aiohttp

        try:
            timeout = aiohttp.ClientTimeout(total=SEND_TIMEOUT_SECONDS)
            async with aiohttp.ClientSession(timeout=timeout, headers=HEADERS) as session:
                while self._queue:
                    body = self._queue.popleft()
                    self._queued_bytes -= len(body)
                    await self._post(session, body)
                # What comes while the session closes has a task of its own.
                self._task = None
        finally:
            if self._task is asyncio.current_task():
                self._task = None

    async def _post(self, session: "aiohttp.ClientSession", body: bytes) -> None:
        import aiohttp

        try:
            async with session.post(self.endpoint, data=body) as response:
                if response.ok:
                    self.sent_count += 1
                else:
                    self._drop(f"HTTP status {response.status}")
        # uvloop raises RuntimeError when it writes to a connection that has just broken.
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            self._drop(str(error) or type(error).__name__)

    def _drop(self, reason: str) -> None:
        self.dropped_count += 1
        if self._now() - self._logged_at >= LOG_INTERVAL_SECONDS:
            self._logged_at = self._now()
            log.warning(
                "client metrics dropped endpoint=%s reason=%r dropped_count=%d",
                self.endpoint,
                reason,
                self.dropped_count,
            )
