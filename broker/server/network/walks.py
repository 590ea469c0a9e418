"""Going through what may be very much in steps, so that others come in between.

A walk is a generator that yields after every few items and returns what it has made. Whoever drives
it decides after each step whether to go on at once (`connection.Connection.walk`). What is walked
through must not change between two steps: of what is not the walk's own a list is made first. A
walk that cannot go on before something has happened yields how to wait for it.

Growing and going take long too: a dict or a set of a million keys is made anew for 100 ms now and
then, and a million entries are freed for 200 ms. So what may be that many is in a `Wide` and not in
a dict, and a walk ends by letting go of what it has made in steps (`emptied`).
"""

import heapq
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Wait = Callable[[Callable[[], None]], None]
"""Is given what to call, later and on the loop, when the walk can go on."""
Steps = Generator[Any, None, R]
"""Yields None, or a `Wait`."""

ITEMS_PER_STEP = 32
"""For what takes some microseconds each; what takes longer has a number of its own."""
QUICK_ITEMS_PER_STEP = 1024


MANY_KEYS = 10_000
"""With more of them a dict takes milliseconds to grow."""
PARTS = 256


class Wide(Generic[K, V]):
    """As a dict, of very many keys; in no order."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[dict[K, V]] = [{} for _ in range(PARTS)]

    def get(self, key: K) -> V | None:
        """Return what the key has, None for one that is not there."""
        return self._parts[hash(key) % PARTS].get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self._parts[hash(key) % PARTS][key] = value

    def __contains__(self, key: object) -> bool:
        return key in self._parts[hash(key) % PARTS]

    def setdefault(self, key: K, value: V) -> V:
        """Return what the key has; one that is not there has `value` now."""
        return self._parts[hash(key) % PARTS].setdefault(key, value)

    def emptied(self) -> "Steps[None]":
        """Let go of all of it."""
        while self._parts:
            self._parts.pop()
            yield


def is_longer_than(items: Sequence[T], array: Callable[[T], Sequence[object]], most: int) -> bool:
    """Tell whether the items, or the entries in their arrays together, are more than so many."""
    return len(items) > most or sum(len(array(item)) for item in items) > most


def each(
    items: Iterable[T], make: Callable[[T], R], per_step: int = ITEMS_PER_STEP
) -> Steps[list[R]]:
    """Make something of every item."""
    made: list[R] = []
    for item in items:
        made.append(make(item))
        if not len(made) % per_step:
            yield
    return made


def each_in_steps(items: Iterable[T], make: Callable[[T], Steps[R]]) -> Steps[list[R]]:
    """Make something of every item, where that has steps of its own."""
    made: list[R] = []
    for item in items:
        made.append((yield from make(item)))
        if not len(made) % ITEMS_PER_STEP:
            yield
    return made


def any_of(items: Iterable[T], is_so: Callable[[T], bool]) -> Steps[bool]:
    """Tell whether some item is so."""
    for number, item in enumerate(items, 1):
        if is_so(item):
            return True
        if not number % QUICK_ITEMS_PER_STEP:
            yield
    return False


def any_of_arrays(
    items: Iterable[T], array: Callable[[T], Sequence[R]], is_so: Callable[[R], bool]
) -> Steps[bool]:
    """Tell whether some entry of the items' arrays is so."""
    for number, item in enumerate(items, 1):
        if (yield from any_of(array(item), is_so)):
            return True
        if not number % ITEMS_PER_STEP:
            yield
    return False


def keys_of(items: Sequence[K]) -> "Steps[Wide[K, None] | dict[K, None]]":
    """Make a mapping of what is only looked for."""
    keys: Wide[K, None] | dict[K, None] = Wide() if len(items) > MANY_KEYS else {}
    for number, item in enumerate(items, 1):
        keys[item] = None
        if not number % QUICK_ITEMS_PER_STEP:
            yield
    return keys


def distinct(items: Sequence[T], key: Callable[[T], Hashable]) -> Steps[list[T]]:
    """Keep the first item of every key: what is asked for twice is answered once."""
    seen: Wide[Hashable, None] | dict[Hashable, None]
    seen = Wide() if len(items) > MANY_KEYS else {}
    kept: list[T] = []
    for number, item in enumerate(items, 1):
        its_key = key(item)
        if its_key not in seen:
            seen[its_key] = None
            kept.append(item)
        if not number % QUICK_ITEMS_PER_STEP:
            yield
    if isinstance(seen, Wide):
        yield from seen.emptied()
    return kept


def merged(
    items: Sequence[T], key: Callable[[T], Hashable], merge: Callable[[T, T], object]
) -> Steps[list[T]]:
    """Keep the first item of every key; `merge` puts every other one into that."""
    return (yield from merged_lists((items,), key, merge))


def merged_lists(
    lists: Sequence[Sequence[T]], key: Callable[[T], Hashable], merge: Callable[[T, T], object]
) -> Steps[list[T]]:
    """Keep the first item of every key in any of the lists; `merge` puts the others into that."""
    first_of: Wide[Hashable, T] | dict[Hashable, T]
    first_of = Wide() if sum(map(len, lists)) > MANY_KEYS else {}
    kept: list[T] = []
    for number, item in enumerate(chain.from_iterable(lists), 1):
        first = first_of.setdefault(key(item), item)
        if first is item:
            kept.append(item)
        else:
            merge(first, item)
        if not number % QUICK_ITEMS_PER_STEP:
            yield
    if isinstance(first_of, Wide):
        yield from first_of.emptied()
    return kept


def emptied(made: list[Any]) -> Steps[None]:
    """Let go of what a walk has made."""
    while made:
        del made[-ITEMS_PER_STEP:]
        yield


def in_order(names: Sequence[str]) -> Steps[Iterator[str]]:
    """Sort; what is returned still does a part of the work with each name that is taken."""
    runs: list[list[str]] = []
    for start in range(0, len(names), QUICK_ITEMS_PER_STEP):
        if runs:
            yield
        runs.append(sorted(names[start : start + QUICK_ITEMS_PER_STEP]))
    return heapq.merge(*runs)
