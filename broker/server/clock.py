"""The one place that reads a clock or makes a random source.

Everything else takes `now_ms` (monotonic), `timestamp_ms` (wall time) or a `random.Random` as an
argument, so that the simulator can supply its own.
"""

import random
import time
import uuid
from typing import Protocol

Random = random.Random


class Clock(Protocol):
    """The current time on two clocks: one for deadlines and one for timestamps."""

    def now_ms(self) -> int:
        """Monotonic milliseconds, for deadlines."""
        ...

    def timestamp_ms(self) -> int:
        """Wall-clock milliseconds since 1970 UTC, for timestamps that are stored."""
        ...


class SystemClock:
    """The real clock."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Monotonic milliseconds."""
        return time.monotonic_ns() // 1_000_000

    def timestamp_ms(self) -> int:
        """Wall-clock milliseconds since 1970 UTC."""
        return time.time_ns() // 1_000_000


monotonic_seconds = time.monotonic
"""Measures durations: it is finer than `Clock`, and is never used for a deadline."""


def system_random() -> Random:
    """Return the operating system's random source: what it gave does not tell what it gives next.

    Ids that clients see come from it, and so do secrets.
    """
    return random.SystemRandom()


def random_uuid() -> uuid.UUID:
    """Return a fresh random UUID, never one of Kafka's reserved ones (their text starts with -)."""
    while True:
        candidate = uuid.uuid4()
        if candidate.int >> 122 != 0b111110:  # base64url would start with "-"
            return candidate
