"""Steps, printed when they are done. A step waits for a condition, never for a fixed time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

LOOK_SECONDS = 0.05


class StepFailedError(Exception):
    """A step failed; the text says what was found."""


class Steps:
    """Prints each step with its duration."""

    def __init__(self, console: Console, patience_seconds: float) -> None:
        self._console = console
        self._patience_seconds = patience_seconds

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Run the step in the block; print its title when it is done."""
        started = time.monotonic()
        with self._console.status(title):
            yield
        self._console.print(f"[green]done[/]  {title} ({time.monotonic() - started:.2f} s)")

    def show(self, text: str) -> None:
        """Print a line of details."""
        self._console.print(text, markup=False, soft_wrap=True)

    def wait_for(self, lacking: Callable[[], str]) -> None:
        """Wait until `lacking` returns ""; raise StepFailedError with its last text."""
        deadline = time.monotonic() + self._patience_seconds
        while what := lacking():
            if time.monotonic() > deadline:
                raise StepFailedError(f"after {self._patience_seconds:.0f} s: {what}")
            time.sleep(LOOK_SECONDS)
