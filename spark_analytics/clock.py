"""The clock of the jobs and the dashboard, which no other module reads."""

import time


def timestamp_ms() -> int:
    """Return the wall-clock time in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def now_seconds() -> float:
    """Return the monotonic time in seconds."""
    return time.monotonic()
