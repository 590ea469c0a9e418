"""A metric of a value per record: the last value, minimum, maximum and mean. Pure.

As in Kafka's metrics, they cover the current sample and the one before it, half a minute each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

SAMPLE_MS: Final = 30_000


@dataclass(slots=True)
class _Sample:
    count: int = 0
    total: int = 0
    least: int = 0
    greatest: int = 0


@dataclass(slots=True)
class Measured:
    last: int = 0
    _now: _Sample = field(default_factory=_Sample)
    _before: _Sample = field(default_factory=_Sample)

    def add(self, value: int) -> None:
        self.last = value
        sample = self._now
        if sample.count == 0 or value < sample.least:
            sample.least = value
        if sample.count == 0 or value > sample.greatest:
            sample.greatest = value
        sample.count += 1
        sample.total += value

    def add_all(self, values: Sequence[int]) -> None:
        """Add at least one."""
        sample, least, greatest = self._now, min(values), max(values)
        self.last = values[-1]
        sample.least = min(sample.least, least) if sample.count else least
        sample.greatest = max(sample.greatest, greatest) if sample.count else greatest
        sample.count += len(values)
        sample.total += sum(values)

    def roll(self) -> None:
        """Begin a new sample; the older one of the two is dropped."""
        self._before, self._now = self._now, _Sample()

    @property
    def count(self) -> int:
        return self._now.count + self._before.count

    @property
    def total(self) -> int:
        return self._now.total + self._before.total

    def named(self, name: str) -> Iterator[tuple[str, float]]:
        """Yield the four values; 0 when both samples are empty."""
        samples = [each for each in (self._now, self._before) if each.count]
        yield name, self.last
        yield f"{name}_min", min((each.least for each in samples), default=0)
        yield f"{name}_max", max((each.greatest for each in samples), default=0)
        yield f"{name}_avg", self.total / self.count if samples else 0
