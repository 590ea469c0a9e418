"""Wait for conditions in a way that does not depend on the load of the machine."""

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
    """Wait until the condition holds; otherwise fail with the text of `shown`.

    The pauses between checks grow, because many checks would slow down the machine.
    """
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, shown()
        time.sleep(pause)
        pause = min(1.5 * pause, _LAST_PAUSE_SECONDS)


def until_passed(check: Callable[[], None], seconds: float) -> None:
    """Repeat a check until it succeeds; raise the error of the last one if it never does."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_LAST_PAUSE_SECONDS)
