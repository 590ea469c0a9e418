"""Merges the records of several partitions by time, newest or oldest first. Pure.

Within a partition the order is that of the offsets. A partition is read in windows: the merge says
which windows it needs before it can give the next row, so that a page of fifty rows reads little
more than fifty records.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

MAX_WIDTH = 10_000
"""Offsets of a window. Windows without records double up to it: a compacted log has gaps."""


class Placed(Protocol):
    """What the merge has to know of a row."""

    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...


P = TypeVar("P", bound=Placed)


class Window(NamedTuple):
    """Offsets of a partition that have to be read: from `start` to before `end`."""

    start: int
    end: int


class _Side(Generic[P]):
    """One partition: what is read and not given out, and what is left to read."""

    def __init__(self, left: Window, width: int) -> None:
        self.left = left
        self.width = width
        self.rows: deque[P] = deque()


class Merge(Generic[P]):
    """Give rows in the order of time. Invariant: every row of a window is given at most once."""

    def __init__(self, ranges: Mapping[int, Window], width: int, *, newest_first: bool) -> None:
        self._newest_first = newest_first
        self._sides: dict[int, _Side[P]] = {
            partition: _Side(left, width) for partition, left in sorted(ranges.items())
        }

    def wanted(self) -> dict[int, Window]:
        """Return the windows without which the next row is not known."""
        return {
            partition: self._window(side)
            for partition, side in self._sides.items()
            if not side.rows and side.left.start < side.left.end
        }

    def _window(self, side: _Side[P]) -> Window:
        start, end = side.left
        if self._newest_first:
            return Window(max(start, end - side.width), end)
        return Window(start, min(end, start + side.width))

    def add(self, partition: int, window: Window, rows: Iterable[P]) -> None:
        """Take the rows of a window that was wanted, in the order of their offsets."""
        side = self._sides[partition]
        found = list(rows)
        if self._newest_first:
            side.left = Window(side.left.start, window.start)
            found.reverse()
        else:
            side.left = Window(window.end, side.left.end)
        if not found:
            side.width = min(2 * side.width, MAX_WIDTH)
        side.rows.extend(found)

    def take(self, count: int) -> list[P]:
        """Return at most so many rows; fewer if windows are wanted, or at the end."""
        taken: list[P] = []
        while len(taken) < count and not self.wanted():
            heads = [side for side in self._sides.values() if side.rows]
            if not heads:
                break
            side = max(heads, key=self._rank)
            taken.append(side.rows.popleft())
        return taken

    def _rank(self, side: _Side[P]) -> tuple[int, int]:
        head = side.rows[0]
        rank = (head.timestamp_ms, head.partition)
        return rank if self._newest_first else (-rank[0], -rank[1])

    def cursors(self) -> dict[int, int]:
        """Return the offset of each partition from which the next page goes on."""
        return {partition: self._cursor(side) for partition, side in self._sides.items()}

    def _cursor(self, side: _Side[P]) -> int:
        if side.rows:
            head = side.rows[0].offset
            return head + 1 if self._newest_first else head
        return side.left.end if self._newest_first else side.left.start

    @property
    def is_done(self) -> bool:
        """True if every row was given out."""
        return not any(
            side.rows or side.left.start < side.left.end for side in self._sides.values()
        )
