"""Tells a user at a terminal how far a long run is.

Only where standard error is a terminal: the output of a script stays what it is. A tool that prints
its results on a terminal shows with them how far it is.
"""

import sys
from collections.abc import Callable

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
