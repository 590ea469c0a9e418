"""Logs the progress of a recovery that takes more than a second."""

import logging

from broker.server.clock import Clock

log = logging.getLogger("millstream.recovery")

EVERY_MS = 1_000


class RecoveryProgress:
    """Counts the bytes read, logs them once a second, and at the end how long it took."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read_bytes = 0
        self._started_ms = clock.now_ms()
        self._next_ms = self._started_ms + EVERY_MS

    def on_progress(self, size_bytes: int) -> None:
        """Note that `size_bytes` more have been read."""
        self._read_bytes += size_bytes
        now_ms = self._clock.now_ms()
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + EVERY_MS
            log.info("recovering logs read_mb=%d mb_per_s=%d", *self._figures(now_ms))

    def finish(self) -> None:
        """Log that all logs are open, if any progress was logged."""
        now_ms = self._clock.now_ms()
        if self._read_bytes and now_ms - self._started_ms >= EVERY_MS:
            seconds = (now_ms - self._started_ms) / 1000
            figures = self._figures(now_ms)
            log.info("recovered logs read_mb=%d mb_per_s=%d seconds=%.1f", *figures, seconds)

    def _figures(self, now_ms: int) -> tuple[int, int]:
        elapsed_ms = max(now_ms - self._started_ms, 1)
        return self._read_bytes // 1_000_000, int(self._read_bytes / elapsed_ms / 1000)
