"""Groups a consumer's batch into runs of one partition each. Pure.

The mirror looks up a partition's data once per run, and updates its metrics once per run.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from millstream.connect.connectors import TopicPartition


class Run(NamedTuple):
    """Consecutive messages of one partition, and their offsets."""

    at: TopicPartition
    messages: list[Any]
    offsets: list[int]


def runs_of(messages: Iterable[Any]) -> Iterator[Run]:
    for at, together in groupby(messages, _place):
        found = list(together)
        yield Run(TopicPartition(*at), found, [each.offset() for each in found])


def _place(message: Any) -> tuple[str, int]:
    return message.topic(), message.partition()
