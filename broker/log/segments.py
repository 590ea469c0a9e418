"""The segments of one partition, in order; the last one is the active one."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from broker.log.segment import Segment

LOADED_CLOSED_SEGMENTS = 2
"""The number of closed segments per partition with an open file and loaded indexes.

A broker has thousands of partitions, and a process has at most about 20,000 file descriptors.
"""


class Segments:
    """Invariant: never empty once the log is open; base offsets ascend strictly."""

    __slots__ = ("_bases", "_loaded", "_segments", "active")

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._bases: list[int] = []
        self._loaded: list[Segment] = []
        self.active: Segment

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments[:])

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def first(self) -> Segment:
        """The oldest segment."""
        return self._segments[0]

    @property
    def size_bytes(self) -> int:
        """The size of all `.log` files."""
        return sum(segment.size_bytes for segment in self._segments)

    def add(self, segment: Segment) -> None:
        """Insert a segment at its place."""
        place = bisect_left(self._bases, segment.base_offset)
        self._segments.insert(place, segment)
        self._bases.insert(place, segment.base_offset)
        self.active = self._segments[-1]

    def remove(self, segment: Segment) -> None:
        """Remove a segment."""
        place = bisect_left(self._bases, segment.base_offset)
        assert self._segments[place] is segment, segment.base_offset
        del self._segments[place]
        del self._bases[place]
        if segment in self._loaded:
            self._loaded.remove(segment)
        if self._segments:
            self.active = self._segments[-1]

    def floor(self, offset: int) -> int:
        """Return the index of the segment of an offset; -1 if it is before the first one."""
        return bisect_right(self._bases, offset) - 1

    def from_offset(self, offset: int) -> list[Segment]:
        """Return the segments that may have offsets at or above `offset`."""
        return self._segments[max(0, self.floor(offset)) :]

    def note_use(self, segment: Segment) -> None:
        """Keep a closed segment loaded, and unload the least recently used one."""
        loaded = self._loaded
        if segment is self.active or (loaded and loaded[-1] is segment):
            return
        if segment in loaded:
            loaded.remove(segment)
        loaded.append(segment)
        if len(loaded) > LOADED_CLOSED_SEGMENTS:
            oldest = loaded.pop(0)
            if oldest is not self.active:
                oldest.unload()
