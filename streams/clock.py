"""The only place of this program that asks for the time."""

import time


def now_seconds() -> float:
    """Return monotonic time."""
    return time.monotonic()
