"""`.timeindex`: up to which offset no record is later than a given time.

An entry has 12 bytes: a timestamp (int64) and a relative offset (int32): the largest timestamp so
far, and the last offset of the batch that has it. Both ascend. When the segment closes, an entry
with the overall maximum is added, so the last entry gives the segment's age.
"""

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct

from broker.records.header import NO_TIMESTAMP

_ENTRY = Struct(">qi")
ENTRY_BYTES = _ENTRY.size


class TimeIndex:
    """Two parallel columns, both strictly ascending."""

    __slots__ = ("relative_offsets", "timestamps")

    def __init__(self) -> None:
        self.timestamps = array("q")
        self.relative_offsets = array("i")

    @classmethod
    def from_bytes(cls, data: bytes) -> "TimeIndex | None":
        """Decode a file; return None if it is invalid and must be rebuilt."""
        if len(data) % ENTRY_BYTES:
            return None
        index = cls()
        for timestamp_ms, relative_offset in _ENTRY.iter_unpack(data):
            index.timestamps.append(timestamp_ms)
            index.relative_offsets.append(relative_offset)
        stamps, offsets = index.timestamps, index.relative_offsets
        # A file that was preallocated and never closed has zeros at its end.
        is_sane = len(stamps) <= 1 or (stamps[-1] > stamps[0] and offsets[-1] >= offsets[0] >= 0)
        return index if is_sane else None

    def to_bytes(self) -> bytes:
        """Return the file's content."""
        pairs = zip(self.timestamps, self.relative_offsets, strict=True)
        return b"".join(_ENTRY.pack(*pair) for pair in pairs)

    def maybe_append(self, timestamp_ms: int, relative_offset: int) -> bool:
        """Add an entry if its timestamp is the largest so far; return True if it was added."""
        if timestamp_ms <= (self.timestamps[-1] if self.timestamps else -1):
            return False
        self.timestamps.append(timestamp_ms)
        self.relative_offsets.append(relative_offset)
        return True

    def floor(self, timestamp_ms: int) -> int:
        """Return the number of the last entry before a time, -1 if there is none.

        No record up to the offset of that entry has this timestamp or a later one.
        """
        return bisect_left(self.timestamps, timestamp_ms) - 1

    def last(self) -> tuple[int, int] | None:
        """Return the largest timestamp and its relative offset."""
        if not self.timestamps:
            return None
        return self.timestamps[-1], self.relative_offsets[-1]

    def rewind(self, relative_offset: int) -> tuple[int, int]:
        """Remove the entries after an offset; return the largest timestamp left and its offset."""
        self.truncate(relative_offset)
        return self.last() or (NO_TIMESTAMP, 0)

    def truncate(self, relative_offset: int) -> None:
        """Remove the entries after an offset."""
        keep = bisect_right(self.relative_offsets, relative_offset)
        del self.timestamps[keep:]
        del self.relative_offsets[keep:]

    @property
    def size_bytes(self) -> int:
        """The size of the file."""
        return ENTRY_BYTES * len(self.timestamps)
