"""Waiting for what must come to be, however loaded the machine is."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0


def until(
    condition: Callable[[], bool],
    seconds: float = PATIENCE_SECONDS,
    *,
    shown: Callable[[], object] = lambda: "it did not happen in time",
) -> None:
    """Wait until the condition holds; it is an error, told by `shown`, when it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.02)
