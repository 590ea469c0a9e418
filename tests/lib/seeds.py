"""Seeds of simulated histories: a few for `make check`, all of them for `make test`."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest


def seeds(count: int, *, fast: int, first: int = 0) -> list[Any]:
    """Return so many seeds; tests with seeds after the first `fast` are marked slow."""
    fast_end, end = first + min(fast, count), first + count
    slow = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(fast_end, end))
    return [*range(first, fast_end), *slow]


def beginning_with(known: int, limit: int) -> Iterator[int]:
    """Yield the seed that is known to show the effect, then all others below a limit."""
    return chain([known], (seed for seed in range(limit) if seed != known))
