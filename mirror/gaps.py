"""Offsets that the source no longer has when the mirror comes to copy them: pure.

Retention or DeleteRecords may move the start of a partition past the place up to which it was
copied. The mirror goes on at the new start, and says once which offsets have no copy.
"""

from dataclasses import dataclass
from typing import NamedTuple

from millrace.connect.connectors import TopicPartition


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
    """Where reading goes on after the source has refused an offset, and what is missing."""

    offset: int
    gap: Gap | None


def resumed_after_reset(
    at: TopicPartition, position: int, offsets: tuple[int, int], *, skips_to_end: bool
) -> Resumed:
    """Decide where to go on when `position` is outside of what the source has.

    `offsets` are where the partition starts and ends. A source that ends before the position has
    lost what it had, or is another one: it is read from its start, and nothing is missing.
    """
    start_offset, end_offset = offsets
    if position > end_offset:
        return Resumed(start_offset, None)
    wanted = end_offset if skips_to_end else start_offset
    if position >= wanted:
        return Resumed(position, None)
    return Resumed(wanted, Gap(at, position, wanted))
