"""Waiting for what must come to be, however loaded the machine is."""

import time
from collections.abc import Callable

PATIENCE_SECONDS = 60.0
_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 0.02, 0.2


def until(
    condition: Callable[[], bool],
    seconds: float = PATIENCE_SECONDS,
    *,
    shown: Callable[[], object] = lambda: "it did not happen in time",
) -> None:
    """Wait until the condition holds; it is an error, told by `shown`, when it never does.

    It is asked for more and more seldom: what takes long would take longer if many asked.
    """
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, shown()
        time.sleep(pause)
        pause = min(1.5 * pause, _LAST_PAUSE_SECONDS)


def until_passed(check: Callable[[], None], seconds: float) -> None:
    """Wait until what is checked is so; raises what the last look has found when it never is."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_LAST_PAUSE_SECONDS)
