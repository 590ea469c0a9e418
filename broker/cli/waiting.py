"""Tells a user at a terminal what a tool waits for."""

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from broker.cli.progress import Progress

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
