"""Going through what may be very much in steps, so that others come in between.

A walk is a generator that yields after every few items and returns what it has made. Whoever drives
it decides after each step whether to go on at once (`connection.Connection.walk`). What is walked
through may change between two steps: a list of it is made first. A walk that cannot go on before
something has happened yields how to wait for it.
"""

import heapq
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

Wait = Callable[[Callable[[], None]], None]
"""Is given what to call, later and on the loop, when the walk can go on."""
Steps = Generator[Any, None, R]
"""Yields None, or a `Wait`."""

ITEMS_PER_STEP = 32
"""For what takes some microseconds each; what takes longer has a number of its own."""
QUICK_ITEMS_PER_STEP = 1024


def each(
    items: Iterable[T], make: Callable[[T], R], per_step: int = ITEMS_PER_STEP
) -> Steps[list[R]]:
    """Make something of every item."""
    made: list[R] = []
    for item in list(items):
        made.append(make(item))
        if not len(made) % per_step:
            yield
    return made


def each_in_steps(items: Iterable[T], make: Callable[[T], Steps[R]]) -> Steps[list[R]]:
    """Make something of every item, where that has steps of its own."""
    made: list[R] = []
    for item in list(items):
        made.append((yield from make(item)))
        if not len(made) % ITEMS_PER_STEP:
            yield
    return made


def distinct(items: Iterable[T], key: Callable[[T], Hashable]) -> Steps[list[T]]:
    """Keep the first item of every key: what is asked for twice is answered once."""
    kept: dict[Hashable, T] = {}
    for number, item in enumerate(items):
        kept.setdefault(key(item), item)
        if number % QUICK_ITEMS_PER_STEP == QUICK_ITEMS_PER_STEP - 1:
            yield
    return list(kept.values())


def in_order(names: Sequence[str]) -> Steps[Iterator[str]]:
    """Sort; what is returned still does a part of the work with each name that is taken."""
    runs: list[list[str]] = []
    for start in range(0, len(names), QUICK_ITEMS_PER_STEP):
        if runs:
            yield
        runs.append(sorted(names[start : start + QUICK_ITEMS_PER_STEP]))
    return heapq.merge(*runs)
