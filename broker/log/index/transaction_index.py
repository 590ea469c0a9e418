"""`.txnindex`: the aborted transactions whose marker is in the segment.

An entry has 34 bytes: version (int16, 0), producer id, first offset, last offset (the marker's),
and the last stable offset when the marker was written (int64 each). The file exists only if there
is an entry.
"""

from struct import Struct
from typing import NamedTuple

_ENTRY = Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size
VERSION = 0


class AbortedTransaction(NamedTuple):
    """One aborted transaction of one producer in one partition."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The entries, in the order of their markers."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[AbortedTransaction] = []

    @classmethod
    def from_bytes(cls, data: bytes, base_offset: int) -> "TransactionIndex | None":
        """Decode a file; return None if it is invalid and must be rebuilt."""
        if len(data) % ENTRY_BYTES:
            return None
        index = cls()
        for version, *numbers in _ENTRY.iter_unpack(data):
            entry = AbortedTransaction(*numbers)
            is_sane = (
                0 <= entry.first_offset <= entry.last_offset
                and entry.last_stable_offset <= entry.last_offset + 1
                and entry.last_offset >= base_offset
            )
            follows = not index.entries or index.entries[-1].last_offset < entry.last_offset
            if version != VERSION or not is_sane or not follows:
                return None
            index.entries.append(entry)
        return index

    def to_bytes(self) -> bytes:
        """Return the file's content."""
        return b"".join(_ENTRY.pack(VERSION, *entry) for entry in self.entries)

    def append(self, entry: AbortedTransaction) -> None:
        """Add an aborted transaction, after its marker was appended."""
        assert not self.entries or self.entries[-1].last_offset < entry.last_offset, entry
        self.entries.append(entry)

    def collect(self, start_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the transactions that overlap a range, and True if later segments have no more."""
        found: list[AbortedTransaction] = []
        for entry in self.entries:
            if entry.last_offset >= start_offset and entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return found, True
        return found, False

    def truncate(self, offset: int) -> bool:
        """Remove transactions whose marker is at or after an offset; return True if any was."""
        count = len(self.entries)
        self.entries = [entry for entry in self.entries if entry.last_offset < offset]
        return len(self.entries) < count
