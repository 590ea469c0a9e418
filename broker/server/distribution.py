"""How long something takes: counts in buckets, and the quantiles of the last minutes.

A value costs one increment: the bounds are six per power of ten, so a quantile is exact to about a
fifth of its value. A reader keeps copies of the counts, one a minute, and the quantiles are those
of what came after the copy that is about `WINDOW_SECONDS` old. While nobody reads, there are none.
"""

import math
from bisect import bisect
from collections import deque
from collections.abc import Sequence

BUCKETS_PER_DECADE = 6
DECADES = 9
BOUNDS = tuple(1e-6 * 10 ** (n / BUCKETS_PER_DECADE) for n in range(BUCKETS_PER_DECADE * DECADES))
"""Seconds, from a microsecond to a quarter of an hour. The bucket of a value is
`bisect(BOUNDS, value)`: those below the first bound are in bucket 0."""
WINDOW_SECONDS = 300
COPY_SECONDS = 60
QUANTILES = {"0.50": 0.5, "0.75": 0.75, "0.95": 0.95, "0.98": 0.98, "0.99": 0.99, "0.999": 0.999}
"""Those of Kafka's histograms, as text for a label and as a number."""


class Distribution:
    """Owns the counts of one quantity. `counts` may be incremented in place."""

    __slots__ = ("_copies", "counts")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self._copies: deque[tuple[float, list[int]]] = deque()

    def add(self, seconds: float) -> None:
        """Count a value."""
        self.counts[bisect(BOUNDS, seconds)] += 1

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.counts)

    def recent(self, now: float) -> list[int]:
        """Return the counts of the last minutes; `now` is monotonic, in seconds."""
        copies = self._copies
        if not copies or now - copies[-1][0] >= COPY_SECONDS:
            copies.append((now, self.counts.copy()))
        while len(copies) > 1 and now - copies[1][0] >= WINDOW_SECONDS:
            copies.popleft()
        at, before = copies[0]
        if now - at < COPY_SECONDS:  # The first reader has the numbers since the start.
            return self.counts.copy()
        return [count - old for count, old in zip(self.counts, before, strict=True)]


class IdleRatio:
    """The share of the last minutes in which a thread had nothing to do."""

    __slots__ = ("_copies",)

    def __init__(self, now: float, busy: float) -> None:
        """`busy` is how long the thread had something to do, in seconds."""
        self._copies = deque([(now, busy)])

    def recent(self, now: float, busy: float) -> float:
        """Return the share, 0 to 1."""
        copies = self._copies
        if now - copies[-1][0] >= COPY_SECONDS:
            copies.append((now, busy))
        while len(copies) > 1 and now - copies[1][0] >= COPY_SECONDS:
            copies.popleft()
        at, before = copies[0]
        return min(1.0, max(0.0, 1 - (busy - before) / (now - at))) if now > at else 1.0


def quantiles(counts: Sequence[int], zeros: int = 0) -> dict[str, float]:
    """Return QUANTILES of counted values in seconds, NaN without values.

    `zeros` is the number of values that were zero and are not in the counts.
    """
    total = sum(counts) + zeros
    if total <= 0:
        return dict.fromkeys(QUANTILES, math.nan)
    return {label: _value(counts, zeros, share * total) for label, share in QUANTILES.items()}


def _value(counts: Sequence[int], zeros: int, rank: float) -> float:
    """Return the value of a rank: the place within its bucket is interpolated."""
    if rank <= zeros:
        return 0.0
    below = zeros
    for number, count in enumerate(counts):
        if count and below + count >= rank:
            low = BOUNDS[number - 1] if number else 0.0
            high = BOUNDS[number] if number < len(BOUNDS) else low
            return low + (high - low) * (rank - below) / count
        below += count
    return BOUNDS[-1]
