"""Tells a user at a terminal what a tool waits for, and how far a long run is.

Only where standard error is a terminal: the output of a script stays what it is. A tool that prints
its results on a terminal shows with them how far it is.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from broker.server.clock import Clock, SystemClock

SILENT_MS = 2_000


class Progress:
    """Prints a line after two seconds, and then each time the run has taken twice as long."""

    def __init__(self, clock: Clock | None = None, *, prints_results: bool = False) -> None:
        """`prints_results`: the run prints to standard output all the time."""
        self._is_shown = sys.stderr.isatty() and not (prints_results and sys.stdout.isatty())
        self._clock = clock or SystemClock()
        self._begin_ms = self._clock.now_ms()
        self._pause_ms = SILENT_MS

    def tell(self, text: Callable[[], str]) -> None:
        """Print the text if it is time for it."""
        if not self._is_shown:
            return
        elapsed_ms = self._clock.now_ms() - self._begin_ms
        if elapsed_ms >= self._pause_ms:
            self._pause_ms = 2 * elapsed_ms
            print(f"{text()} after {elapsed_ms / 1000:.0f} s", file=sys.stderr, flush=True)


SILENT_SECONDS = 2.0


@contextmanager
def told_when_long(what: str) -> Iterator[None]:
    """Print what is waited for, once, when it takes longer than two seconds.

    Only a terminal is told: the standard error of a script stays what it is.
    """
    if not sys.stderr.isatty():
        yield
        return
    timer = threading.Timer(SILENT_SECONDS, _tell, [what])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _tell(what: str) -> None:
    print(f"Waiting for {what} (Ctrl-C ends it)", file=sys.stderr, flush=True)


class TerminalWatch:
    """Tells a user at a terminal of a long wait, and of many answers that come quickly each."""

    def __init__(self) -> None:
        self._progress = Progress()
        self._answers = 0

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Return the block of one wait."""
        return told_when_long(what)

    def answered(self, request: str) -> None:
        """Count an answer."""
        self._answers += 1
        self._progress.tell(lambda: f"{self._answers} requests answered, the last was {request},")
