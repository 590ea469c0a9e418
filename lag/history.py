"""When a partition had which end: how many seconds ago the first record not handled was written.

A look knows the end of each partition at its time. Between two looks the end is taken to have grown
evenly. A committed offset from before the first look has the time of its record instead, if that
was read.
"""

from bisect import bisect_right
from itertools import pairwise

MAX_ENDS = 200
"""The ends that are kept of a partition; of more, every second of the older half is dropped."""


class History:
    """Owns the known ends of one partition, by time."""

    __slots__ = ("_ends", "_times")

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._times: list[int] = []

    def note(self, end: int, at_ms: int) -> None:
        """Take in the end at a time; one that is smaller than before begins a new history."""
        if self._ends and end < self._ends[-1]:
            self._ends, self._times = [], []
        if len(self._ends) >= 2 and self._ends[-2] == end:
            self._times[-1] = at_ms  # Of a partition that stands still, two ends are enough.
            return
        self._ends.append(end)
        self._times.append(at_ms)
        if len(self._ends) > MAX_ENDS:
            half = MAX_ENDS // 2
            self._ends[:half] = self._ends[:half:2]
            self._times[:half] = self._times[:half:2]

    def seconds_behind(self, committed: int, now_ms: int, written_ms: int | None) -> float | None:
        """Return how long ago the record at this offset was written; None if that is not known.

        It is the first one that was not handled, so the committed offset is below the end.
        """
        place = bisect_right(self._ends, committed)
        if place == len(self._ends):
            return None
        if place == 0:
            return None if written_ms is None else max(0.0, (now_ms - written_ms) / 1000)
        (low, high), (began, ended) = (
            next(pairwise(values[place - 1 : place + 1])) for values in (self._ends, self._times)
        )
        at_ms = began + (ended - began) * (committed - low) / (high - low)
        return max(0.0, (now_ms - at_ms) / 1000)
