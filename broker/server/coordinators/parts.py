"""Splits a request about very many partitions of one group into several questions to its shard.

A question to a shard is answered in one turn of the loop, so it has at most MAX_ENTRIES_AT_ONCE
entries: a request with more becomes several questions, in its order, and their answers become one
answer. The records of a part are one batch, so only a request that large may be carried out in
part. Invariant: a request that is not large is one question, unchanged.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

MAX_ENTRIES_AT_ONCE = 1_000
"""A commit of this many offsets takes the shard some milliseconds; few groups read as many."""

T = TypeVar("T")


class AnsweredTopic(Protocol):
    """A topic in a response, with the results of its partitions."""

    name: str
    partitions: list[Any]


AnsweredT = TypeVar("AnsweredT", bound=AnsweredTopic)


def parts_of(
    topics: Sequence[T],
    entries: Callable[[T], Sequence[object]],
    cut: Callable[[T, slice], T],
) -> Iterator[list[T]]:
    """Split topics into parts; `cut` makes a topic with some of the entries of another."""
    if len(topics) + sum(len(entries(topic)) for topic in topics) <= MAX_ENTRIES_AT_ONCE:
        yield list(topics)
        return
    part: list[T] = []
    left = MAX_ENTRIES_AT_ONCE
    for topic in topics:
        size, start = len(entries(topic)), 0
        while True:
            end = min(size, start + left)
            part.append(topic if end - start == size else cut(topic, slice(start, end)))
            left -= max(1, end - start)
            start = end
            if not left:
                yield part
                part, left = [], MAX_ENTRIES_AT_ONCE
            if start == size:
                break
    if part:
        yield part


def joined(
    parts: Iterable[list[AnsweredT]], key: Callable[[AnsweredT], Hashable]
) -> list[AnsweredT]:
    """Merge the answers to the parts: each topic is named once, at its first place."""
    first_of: dict[Hashable, AnsweredT] = {}
    for part in parts:
        for topic in part:
            first = first_of.setdefault(key(topic), topic)
            if first is not topic:
                first.partitions += topic.partitions
    return list(first_of.values())
