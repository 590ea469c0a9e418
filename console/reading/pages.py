"""A page of a topic's records, newest or oldest first across its partitions, by time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from console.reading.rows import RowReader
from console.records.merging import Merge, Window
from console.records.rows import Row

MAX_ROUNDS: Final = 60
"""A page reads in so many rounds at most: a compacted log may be nearly empty. What is not reached
by then is reached by the next page."""
_MIN_WIDTH: Final = 5


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Rows in the order of time, and where each partition goes on."""

    rows: list[Row]
    cursors: dict[int, int]
    is_end: bool


async def read_page(
    reader: RowReader,
    ranges: Mapping[int, Window],
    count: int,
    *,
    newest_first: bool,
) -> RecordPage:
    """Read at most `count` rows of some ranges; raise KafkaError or ConnectionFailed."""
    left = {each: window for each, window in ranges.items() if window.start < window.end}
    width = max(_MIN_WIDTH, 2 * count // max(1, len(left)))
    merge: Merge[Row] = Merge(left, width if len(left) > 1 else count, newest_first=newest_first)
    rows: list[Row] = []
    for _ in range(MAX_ROUNDS):
        rows += merge.take(count - len(rows))
        wanted = merge.wanted()
        if len(rows) >= count or not wanted:
            break
        found = await reader.read(wanted)
        for partition, window in wanted.items():
            merge.add(partition, window, found[partition])
    return RecordPage(rows, merge.cursors(), merge.is_done)
