"""`.index`: the approximate position of an offset in the segment.

An entry has 8 bytes: the last offset of a batch relative to the segment's base offset (int32), and
the position of that batch (int32). There is one about every `index.interval.bytes`. A reader takes
the last entry at or below its offset and reads the batch headers from there.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right

ENTRY_BYTES = 8
MAX_RELATIVE_OFFSET = 2**31 - 1


class OffsetIndex:
    """Two parallel columns, both strictly ascending."""

    __slots__ = ("is_compared", "positions", "relative_offsets")

    def __init__(self) -> None:
        self.is_compared: bytearray | None = None
        """Per entry, 1 if it was compared with its batch; None for an index built from batches."""
        self.relative_offsets = array("i")
        self.positions = array("i")

    @classmethod
    def from_bytes(cls, data: bytes, log_size_bytes: int) -> "OffsetIndex | None":
        """Decode a file; return None if it is invalid and must be rebuilt."""
        if len(data) % ENTRY_BYTES:
            return None
        numbers = array("i", data)
        if sys.byteorder == "little":
            numbers.byteswap()
        index = cls()
        index.relative_offsets, index.positions = numbers[0::2], numbers[1::2]
        index.is_compared = bytearray(len(index.positions))
        return index if index._is_sane(log_size_bytes) else None

    def _is_sane(self, log_size_bytes: int) -> bool:
        if not self.positions:
            return True
        # A file that was preallocated and never closed has zeros at its end.
        if self.relative_offsets[-1] <= 0 and len(self.positions) > 1:
            return False
        return 0 <= self.positions[-1] < log_size_bytes and self.relative_offsets[-1] >= 0

    def to_bytes(self) -> bytes:
        """Return the file's content."""
        numbers = array("i", bytes(ENTRY_BYTES * len(self.positions)))
        numbers[0::2], numbers[1::2] = self.relative_offsets, self.positions
        if sys.byteorder == "little":
            numbers.byteswap()
        return numbers.tobytes()

    def append(self, relative_offset: int, position: int) -> None:
        """Add the entry of a batch, by its last offset."""
        self.relative_offsets.append(relative_offset)
        self.positions.append(position)
        if self.is_compared is not None:
            self.is_compared.append(True)

    def floor(self, relative_offset: int) -> int:
        """Return the number of the last entry at or below an offset, -1 if there is none."""
        return bisect_right(self.relative_offsets, relative_offset) - 1

    def lookup(self, relative_offset: int) -> int:
        """Return the position from which to search for an offset."""
        entry = self.floor(relative_offset)
        return self.positions[entry] if entry >= 0 else 0

    def floor_of_position(self, position: int) -> int:
        """Return the number of the last entry whose batch is at or before a position, or -1."""
        return bisect_right(self.positions, position) - 1

    def rewind(self, position: int) -> tuple[int, int]:
        """Remove the entries at and after a position; return the last one's offset and position.

        Return (-1, 0) for an index without an entry before it, or one from a file, whose entries
        may not have been compared with their batches.
        """
        self.truncate(position)
        if not self.positions or self.is_compared is not None:
            return -1, 0
        return self.relative_offsets[-1], self.positions[-1]

    def truncate(self, position: int) -> None:
        """Remove the entries of batches at and after a position."""
        keep = bisect_left(self.positions, position)
        del self.relative_offsets[keep:]
        del self.positions[keep:]
        if self.is_compared is not None:
            del self.is_compared[keep:]

    @property
    def size_bytes(self) -> int:
        """The size of the file."""
        return ENTRY_BYTES * len(self.positions)
