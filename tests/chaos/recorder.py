"""Records the history of a run as it happens, from many threads."""

import itertools
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.chaos.history import Key, Kind, Operation, Outcome, Read, Sent, Value, write


class Outcomes(NamedTuple):
    """The outcome of an operation, with its sends and reads."""

    outcome: Outcome
    sends: tuple[Sent, ...] = ()
    reads: tuple[Read, ...] = ()
    rebalanced: tuple[Key, ...] = ()
    error: str = ""


class Recorder:
    """Keeps all ended operations, and appends each to a file at once."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w")
        self._lock = threading.Lock()
        self._values = itertools.count(1)
        self._started = time.monotonic()
        self._operations: list[Operation] = []
        self._last_acknowledged: dict[Key, float] = {}

    def now_ms(self) -> float:
        """Return the milliseconds since the start of the run."""
        return (time.monotonic() - self._started) * 1000

    def next_value(self) -> Value:
        """Return a new unique value."""
        return next(self._values)

    def add(
        self,
        process: int,
        kind: Kind,
        start_ms: float,
        done: Outcomes,
        keys: Sequence[Key] = (),
    ) -> None:
        """Record an operation that ends at the current time."""
        _, sends, reads, rebalanced, error = done
        with self._lock:
            operation = Operation(
                process,
                kind,
                done.outcome,
                round(start_ms, 3),
                round(self.now_ms(), 3),
                sends,
                reads,
                tuple(keys),
                rebalanced,
                error,
            )
            self._operations.append(operation)
            if kind is Kind.SEND and done.outcome is Outcome.OK:
                for sent in sends:
                    last = self._last_acknowledged.get(sent.key, start_ms)
                    self._last_acknowledged[sent.key] = max(last, start_ms)
            write(operation, self._file)

    def operations(self) -> list[Operation]:
        """Return all operations so far."""
        with self._lock:
            return list(self._operations)

    def is_acknowledged_since(self, key: Key, time_ms: float) -> bool:
        """Return True if a value sent on this key after a time is acknowledged."""
        return self._last_acknowledged.get(key, -1.0) > time_ms

    def close(self) -> None:
        """Close the file."""
        self._file.close()
