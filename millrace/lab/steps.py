"""One step after the other, printed as it happens; steps wait for conditions, never for a time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

LOOK_SECONDS = 0.05


class StepFailedError(Exception):
    """A step did not come true; the text says what was seen instead."""


class Steps:
    """Prints steps, with the time each has taken."""

    def __init__(self, console: Console, patience_seconds: float) -> None:
        self._console = console
        self._patience_seconds = patience_seconds

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Do a step in the block; prints it when it is done."""
        started = time.monotonic()
        with self._console.status(title):
            yield
        self._console.print(f"[green]done[/]  {title} ({time.monotonic() - started:.2f} s)")

    def show(self, text: str) -> None:
        """Print what is to be seen."""
        self._console.print(text, markup=False, soft_wrap=True)

    def wait_for(self, lacking: Callable[[], str]) -> None:
        """Wait until nothing is lacking; raises StepFailedError with what still is."""
        deadline = time.monotonic() + self._patience_seconds
        while what := lacking():
            if time.monotonic() > deadline:
                raise StepFailedError(f"after {self._patience_seconds:.0f} s {what}")
            time.sleep(LOOK_SECONDS)
