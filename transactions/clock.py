"""The only place where transactions ask for the time."""

import time


def timestamp_ms() -> int:
    """Return wall time in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def now_seconds() -> float:
    """Return monotonic time."""
    return time.monotonic()
