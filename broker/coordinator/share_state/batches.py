"""State batches: ranges of offsets with the state and the count of their deliveries.

A list of batches is *combined* when it is sorted, no two batches overlap, and no two neighbours
could be one. Where two batches overlap, the one with the higher delivery count wins, and among
equal counts the one with the higher state: a count never falls, and Acknowledged and Archived are
final for a count. So a repeated or a late write of a batch changes nothing.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
"""The delivery states that are persisted."""
DELIVERY_STATES = frozenset({AVAILABLE, ACKNOWLEDGED, ARCHIVED})


class StateBatch(NamedTuple):
    """The offsets `first_offset` to `last_offset`, both included."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

    @property
    def is_valid(self) -> bool:
        """Return whether the range is not empty, and state and count are possible."""
        return (
            0 <= self.first_offset <= self.last_offset
            and self.delivery_state in DELIVERY_STATES
            and self.delivery_count >= 0
        )


def combined(batches: Iterable[StateBatch], start_offset: int) -> tuple[StateBatch, ...]:
    """Combine batches, and cut off what is below the start offset; -1 cuts nothing."""
    kept = sorted(_from(start_offset, batches))
    if all(not _meets(first, second) for first, second in pairwise(kept)):
        return tuple(kept)
    return tuple(_joined(_without_overlaps(kept)))


def _from(start_offset: int, batches: Iterable[StateBatch]) -> Iterable[StateBatch]:
    for batch in batches:
        if batch.first_offset >= start_offset:
            yield batch
        elif batch.last_offset >= start_offset:
            yield batch._replace(first_offset=start_offset)


def _meets(first: StateBatch, second: StateBatch) -> bool:
    """Return whether two sorted batches overlap, or could be one."""
    if second.first_offset <= first.last_offset:
        return True
    return second.first_offset == first.last_offset + 1 and first[2:] == second[2:]


def _without_overlaps(batches: list[StateBatch]) -> Iterable[StateBatch]:
    """Yield, in order, which batch wins where; `batches` are sorted."""
    edges = {batch.first_offset for batch in batches} | {batch.last_offset + 1 for batch in batches}
    open_batches: list[tuple[int, int, int]] = []
    """A heap of those that have begun, the winner first: negated count and state, last offset."""
    begun = 0
    for edge, next_edge in pairwise(sorted(edges)):
        while begun < len(batches) and batches[begun].first_offset <= edge:
            _, last_offset, state, count = batches[begun]
            heappush(open_batches, (-count, -state, last_offset))
            begun += 1
        while open_batches and open_batches[0][2] < edge:
            heappop(open_batches)
        if open_batches:
            count, state, _ = open_batches[0]
            yield StateBatch(edge, next_edge - 1, -state, -count)


def _joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    joined: list[StateBatch] = []
    for batch in batches:
        if joined and _meets(joined[-1], batch):
            joined[-1] = joined[-1]._replace(last_offset=batch.last_offset)
        else:
            joined.append(batch)
    return joined
