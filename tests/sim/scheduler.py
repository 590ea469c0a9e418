"""Virtual time: a heap of events, run one after the other, with all randomness from one seed."""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random


class Scheduler:
    """The clock of a simulation; `now_ms` is the time of the latest event."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.event_count = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0

    def at(self, time_ms: int, action: Callable[[], None]) -> None:
        """Call `action` at a time; calls of equal times run in the order of scheduling."""
        assert time_ms >= self.now_ms, (time_ms, self.now_ms)
        self._sequence += 1
        heappush(self._events, (time_ms, self._sequence, action))

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Call `action` after a delay."""
        self.at(self.now_ms + delay_ms, action)

    def run_until(self, time_ms: int) -> None:
        """Run all events up to a time."""
        while self._events and self._events[0][0] <= time_ms:
            self.now_ms, _, action = heappop(self._events)
            self.event_count += 1
            action()
        self.now_ms = time_ms
