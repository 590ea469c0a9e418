"""Says how far recovery has come, once it takes more than a second."""

import logging

from broker.server.clock import Clock

log = logging.getLogger("millrace.recovery")

EVERY_MS = 1_000


class RecoveryProgress:
    """Counts recovered bytes and logs them once a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._recovered_bytes = 0
        self._next_ms = clock.now_ms() + EVERY_MS

    def on_progress(self, size_bytes: int) -> None:
        """Note that `size_bytes` more have been checked."""
        self._recovered_bytes += size_bytes
        now_ms = self._clock.now_ms()
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + EVERY_MS
            log.info("recovering logs checked_mb=%d", self._recovered_bytes // 1_000_000)
