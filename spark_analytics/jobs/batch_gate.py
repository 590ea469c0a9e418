"""Keeps micro-batches and the stopping of queries apart.

Spark can lose its way when a query is stopped inside a Python batch (SPARK-39218), so a stop waits
for the batch in hand. A batch that comes meanwhile must not wait for the stop in turn: Spark waits
for the batch. It fails instead, and is run again when the query is started again.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOOK_SECONDS = 0.1


class QueriesStoppingError(RuntimeError):
    """A micro-batch came while its query was being stopped."""


class BatchGate:
    """One batch at a time is inside; none while the gate is closed."""

    def __init__(self) -> None:
        self._inside = threading.Lock()
        self._is_closed = threading.Event()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Be inside; raise QueriesStoppingError when the gate is closed."""
        while not self._inside.acquire(timeout=_LOOK_SECONDS):
            self._check()
        try:
            self._check()
            yield
        finally:
            self._inside.release()

    @contextmanager
    def closed(self, timeout_seconds: float) -> Iterator[None]:
        """Let nobody in; begin when nobody is inside, or the time is over."""
        self._is_closed.set()
        is_empty = self._inside.acquire(timeout=timeout_seconds)
        try:
            yield
        finally:
            self._is_closed.clear()
            if is_empty:
                self._inside.release()

    def _check(self) -> None:
        if self._is_closed.is_set():
            raise QueriesStoppingError("the query is being stopped")
