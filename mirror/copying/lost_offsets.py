"""Finds offsets that the source deleted before the mirror copied them. Pure.

Retention or DeleteRecords may move a partition's log start offset beyond the mirror's position. The
mirror continues at the log start offset, and reports once which offsets have no copy.
"""

from dataclasses import dataclass
from typing import NamedTuple

from millstream.connect.connectors import TopicPartition


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets from `start_offset` up to, and without, `end_offset`."""

    at: TopicPartition
    start_offset: int
    end_offset: int

    @property
    def size(self) -> int:
        return self.end_offset - self.start_offset

    def __str__(self) -> str:
        last = self.end_offset - 1
        which = f"offset {last}" if self.size == 1 else f"offsets {self.start_offset} to {last}"
        return f"{which} of {self.at.topic}-{self.at.partition}"


class Resumed(NamedTuple):
    """The offset to continue at after the source has refused one, and the missing offsets."""

    offset: int
    gap: Gap | None


def resumed_after_reset(
    at: TopicPartition, position: int, offsets: tuple[int, int], *, skips_to_end: bool
) -> Resumed:
    """Decide where to continue when `position` is out of the source's range.

    `offsets` are the partition's start and end. A source that ends before the position has lost
    records or is another cluster: it is read from its start, and no offset counts as missing.
    """
    start_offset, end_offset = offsets
    if position > end_offset:
        return Resumed(start_offset, None)
    wanted = end_offset if skips_to_end else start_offset
    if position >= wanted:
        return Resumed(position, None)
    return Resumed(wanted, Gap(at, position, wanted))
