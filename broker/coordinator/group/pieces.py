"""Long computations in pieces, so that none of them blocks other requests."""

from collections.abc import Iterator

COST_AT_ONCE = 10_000
"""The members, topics and partitions touched in one `advance`: a few milliseconds."""


def advance(steps: Iterator[int]) -> bool:
    """Compute for a few milliseconds; return True when done. Each step yields its cost."""
    cost = 0
    for worked in steps:
        cost += worked
        if cost >= COST_AT_ONCE:
            return False
    return True
