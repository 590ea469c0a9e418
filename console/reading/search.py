"""A search through a range of a topic: it says how far it is, and ends where the range ends.

The ends are taken when the search begins, so a topic that grows does not keep it running. It holds
what one Fetch returns, whatever the size of the topic. A search that was stopped goes on from the
positions of its last progress.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from console.reading.partitions import ReadLimits
from console.reading.rows import RowReader
from console.records.merging import Window
from console.records.rows import Row

SEARCHED_BYTES: Final = 4 << 20
"""A key or value that is larger is not looked into, and counted."""
_LIMITS: Final = ReadLimits(max_bytes=8 << 20, partition_bytes=2 << 20, wait_ms=100)
_STALLS: Final = 5


@dataclass(slots=True)
class Progress:
    """How far a search is: offsets of its range that are behind it, records read, rows found."""

    total_offsets: int
    read_offsets: int = 0
    record_count: int = 0
    found_count: int = 0
    too_large_count: int = 0
    positions: dict[int, int] = field(default_factory=dict)
    is_done: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the progress as it is sent to the page."""
        return {
            "total": str(self.total_offsets),
            "read": str(self.read_offsets),
            "records": str(self.record_count),
            "found": self.found_count,
            "too_large": self.too_large_count,
            "positions": {str(each): str(offset) for each, offset in self.positions.items()},
            "is_done": self.is_done,
        }


async def search(
    reader: RowReader, ranges: Mapping[int, Window], max_found: int
) -> AsyncGenerator[tuple[list[Row], Progress], None]:
    """Yield rows that fit with the progress so far; end at the range's end or after `max_found`.

    Raise KafkaError or ConnectionFailed.
    """
    left = {each: window for each, window in ranges.items() if window.start < window.end}
    progress = Progress(
        sum(window.end - window.start for window in ranges.values()),
        positions={each: window.start for each, window in ranges.items()},
    )
    stalls = 0
    while left and progress.found_count < max_found and stalls < _STALLS:
        rows: list[Row] = []
        has_advanced = False
        for partition, chunk in (await reader.read_once(left, _LIMITS)).items():
            window = left[partition]
            has_advanced |= chunk.next_offset > window.start
            progress.read_offsets += chunk.next_offset - window.start
            progress.record_count += chunk.record_count
            progress.too_large_count += chunk.too_large_count
            progress.positions[partition] = chunk.next_offset
            left[partition] = Window(chunk.next_offset, window.end)
            rows += chunk.rows
        left = {each: window for each, window in left.items() if window.start < window.end}
        stalls = 0 if has_advanced else stalls + 1
        progress.found_count += len(rows)
        yield rows, progress
    progress.is_done = not left or stalls >= _STALLS
    yield [], progress
