"""Who waits at one partition for a watermark: acks=all for the high one, DeleteRecords for the low.

A token is whatever the shell answers by. Appends come in order of offset, so a new wait nearly
always goes to the end; a repeat of an earlier batch may ask for less.
"""

from bisect import insort
from typing import Generic, TypeVar

T = TypeVar("T")


class OffsetWaits(Generic[T]):
    """Invariant: ascending by required offset, equal ones in the order of asking."""

    __slots__ = ("_first", "_waits")

    def __init__(self) -> None:
        self._waits: list[tuple[int, T]] = []
        self._first = 0  # those before it are fulfilled

    def __len__(self) -> int:
        return len(self._waits) - self._first

    def add(self, required_offset: int, token: T) -> None:
        """Wait until the watermark has reached an offset."""
        waits = self._waits
        if not waits or waits[-1][0] <= required_offset:
            waits.append((required_offset, token))
        else:
            insort(waits, (required_offset, token), lo=self._first, key=lambda wait: wait[0])

    def take_fulfilled(self, watermark: int) -> list[T]:
        """Give, and forget, those whose offset the watermark has reached."""
        waits, start = self._waits, self._first
        end = start
        while end < len(waits) and waits[end][0] <= watermark:
            end += 1
        if end == start:
            return []
        fulfilled = [token for _, token in waits[start:end]]
        if end == len(waits):
            self._waits, self._first = [], 0
        elif end > 1_000:
            self._waits, self._first = waits[end:], 0
        else:
            self._first = end
        return fulfilled

    def take_all(self) -> list[T]:
        """Give, and forget, everybody: the leadership is lost."""
        left = [token for _, token in self._waits[self._first :]]
        self._waits, self._first = [], 0
        return left

    def discard(self, token: T) -> bool:
        """Forget one whose deadline has come; tell whether it still waited."""
        for index in range(self._first, len(self._waits)):
            if self._waits[index][1] is token:
                del self._waits[index]
                return True
        return False
