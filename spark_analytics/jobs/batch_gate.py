"""Mutual exclusion of micro-batches and the stopping of queries.

Spark can hang if a query is stopped inside a Python batch (SPARK-39218), so a stop waits for the
current batch. A batch that starts meanwhile must not wait for the stop, because Spark waits for the
batch. It fails instead, and runs again when the query is restarted.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOOK_SECONDS = 0.1


class QueriesStoppingError(RuntimeError):
    """A micro-batch started while its query was being stopped."""


class BatchGate:
    """A lock that one batch at a time holds, and none while the gate is closed."""

    def __init__(self) -> None:
        self._inside = threading.Lock()
        self._is_closed = threading.Event()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Hold the lock for a batch; raise QueriesStoppingError if the gate is closed."""
        while not self._inside.acquire(timeout=_LOOK_SECONDS):
            self._check()
        try:
            self._check()
            yield
        finally:
            self._inside.release()

    @contextmanager
    def closed(self, timeout_seconds: float) -> Iterator[None]:
        """Close the gate; wait for the current batch, at most for the timeout."""
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
