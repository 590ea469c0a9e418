"""The only module of Connect that reads a clock or a source of randomness."""

import random
import secrets
import time

randrange = random.Random().randrange


def timestamp_ms() -> int:
    """Return wall time in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def now_ms() -> int:
    """Return monotonic time in milliseconds."""
    return time.monotonic_ns() // 1_000_000


def random_bytes(size: int) -> bytes:
    """Return bytes that cannot be guessed."""
    return secrets.token_bytes(size)


def wait(seconds: float) -> None:
    """Block the thread for `seconds`."""
    time.sleep(seconds)
