"""Virtual time: events in a heap, one after the other, everything from one seed."""

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random


class Scheduler:
    """The clock of a simulation; `now_ms` moves only when nothing is left to do before."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.event_count = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._sequence = 0

    def at(self, time_ms: int, action: Callable[[], None]) -> None:
        """Do something at a time; equal times in the order of asking."""
        assert time_ms >= self.now_ms, (time_ms, self.now_ms)
        self._sequence += 1
        heappush(self._events, (time_ms, self._sequence, action))

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something a while later."""
        self.at(self.now_ms + delay_ms, action)

    def run_until(self, time_ms: int) -> None:
        """Let time pass."""
        while self._events and self._events[0][0] <= time_ms:
            self.now_ms, _, action = heappop(self._events)
            self.event_count += 1
            action()
        self.now_ms = time_ms
