"""The only place where the programs ask for the time or for randomness."""

import random
import secrets
import time
import uuid
from datetime import UTC, datetime

randrange = random.Random().randrange
"""For pauses that differ from process to process."""


def timestamp_ms() -> int:
    """Return wall time in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def timestamp_ns() -> int:
    """Return wall time in nanoseconds since 1970, UTC."""
    return time.time_ns()


def utc_now() -> datetime:
    """Return the time to the millisecond, which is what events keep."""
    return to_milliseconds(datetime.now(UTC))


def to_milliseconds(moment: datetime) -> datetime:
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def now_seconds() -> float:
    """Return monotonic time."""
    return time.monotonic()


def now_ms() -> int:
    """Return monotonic time in milliseconds."""
    return time.monotonic_ns() // 1_000_000


def random_id() -> str:
    return str(uuid.uuid4())


def random_number() -> int:
    """Return a number below 65,536."""
    return secrets.randbelow(1 << 16)


def random_hex(size_bytes: int) -> str:
    return secrets.token_hex(size_bytes)


def random_bytes(size: int) -> bytes:
    """Return bytes that cannot be guessed."""
    return secrets.token_bytes(size)


def wait(seconds: float) -> None:
    """Block the thread for `seconds`."""
    time.sleep(seconds)
