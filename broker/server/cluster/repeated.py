"""Removes repeated entries of a request: Kafka answers such an entry once."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")


def distinct(items: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """Return the first item of every key."""
    first_of: dict[Hashable, T] = {}
    for item in items:
        first_of.setdefault(key(item), item)
    return list(first_of.values())


def merged(
    items: Iterable[T], key: Callable[[T], Hashable], merge: Callable[[T, T], object]
) -> list[T]:
    """Return the first item of every key; `merge` adds each later item to the first."""
    first_of: dict[Hashable, T] = {}
    for item in items:
        first = first_of.setdefault(key(item), item)
        if first is not item:
            merge(first, item)
    return list(first_of.values())
