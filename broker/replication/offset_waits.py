"""The requests at one partition that wait for a watermark to reach an offset.

A produce with acks=all waits for the high watermark, a DeleteRecords for the low one. A token
stands for the request that the shell answers. Appends arrive in the order of their offsets, so a
new wait nearly always goes to the end; a repeat of an earlier batch may wait for a lower offset.
"""

from bisect import insort
from typing import Generic, TypeVar

T = TypeVar("T")


class OffsetWaits(Generic[T]):
    """Invariant: waits ascend by required offset; equal ones are in the order of their arrival."""

    __slots__ = ("_first", "_waits")

    def __init__(self) -> None:
        self._waits: list[tuple[int, T]] = []
        self._first = 0  # the waits before this index are fulfilled

    def __len__(self) -> int:
        return len(self._waits) - self._first

    def add(self, required_offset: int, token: T) -> None:
        """Add a request that waits until the watermark reaches an offset."""
        waits = self._waits
        if not waits or waits[-1][0] <= required_offset:
            waits.append((required_offset, token))
        else:
            insort(waits, (required_offset, token), lo=self._first, key=lambda wait: wait[0])

    def take_fulfilled(self, watermark: int) -> list[T]:
        """Remove and return the tokens whose offset the watermark has reached."""
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
        """Remove and return all tokens: the leadership is lost."""
        if not self._waits:
            return []
        left = [token for _, token in self._waits[self._first :]]
        self._waits, self._first = [], 0
        return left

    def discard(self, token: T) -> bool:
        """Remove a token whose deadline has passed; return True if it still waited."""
        for index in range(self._first, len(self._waits)):
            if self._waits[index][1] is token:
                del self._waits[index]
                return True
        return False
