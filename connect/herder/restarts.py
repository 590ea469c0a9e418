"""The delay after which a failed task is restarted. Kafka Connect never restarts one by itself.

With `errors.task.restart.max.delay.ms` above 0, a failed task restarts after one second, then after
two, four and so on up to that delay, without end. A task that ran for that long starts with one
second again.
"""

from dataclasses import dataclass
from typing import Final

SETTING: Final = "errors.task.restart.max.delay.ms"
DEFAULT_MAX_DELAY_MS: Final = 60_000
_FIRST_DELAY_MS: Final = 1_000
_DOUBLINGS_LIMIT: Final = 40


@dataclass(slots=True)
class Restarts:
    """The number of failures in a row of one task."""

    count: int = 0
    started_at_ms: int | None = None

    def started(self, now_ms: int) -> None:
        self.started_at_ms = now_ms

    def failed(self, now_ms: int, max_delay_ms: int) -> int | None:
        """Return the time at which the task restarts; None when it does not."""
        if max_delay_ms <= 0:
            return None
        if self.started_at_ms is not None and now_ms - self.started_at_ms >= max_delay_ms:
            self.count = 0
        delay_ms = min(_FIRST_DELAY_MS << min(self.count, _DOUBLINGS_LIMIT), max_delay_ms)
        self.count += 1
        return now_ms + delay_ms
