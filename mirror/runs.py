"""What a consumer gives at once, in runs of one partition each: pure.

What is the same for every record of a partition is looked up once for a run, and figures are
counted of all of it together.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

from millrace.connect.connectors import TopicPartition


class Run(NamedTuple):
    """Messages of one partition that came one behind the other, and their offsets."""

    at: TopicPartition
    messages: list[Any]
    offsets: list[int]


def runs_of(messages: Iterable[Any]) -> Iterator[Run]:
    for at, together in groupby(messages, _place):
        found = list(together)
        yield Run(TopicPartition(*at), found, [each.offset() for each in found])


def _place(message: Any) -> tuple[str, int]:
    return message.topic(), message.partition()
