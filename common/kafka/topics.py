"""Partitions by name, and what a topic is to the programs that create it. Pure.

Topics whose keys must meet have the same number of partitions: a topic that exists with another
number is refused (`topic_creation`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

PARTITION_COUNT = 6
_WEEK_MS = 7 * 24 * 3600 * 1000
WEEK: Mapping[str, str] = {"retention.ms": str(_WEEK_MS)}
COMPACT: Mapping[str, str] = {"cleanup.policy": "compact"}


class TopicPartition(NamedTuple):
    """One partition of one topic, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True)
class Topic:
    """A topic as it is created when it is missing."""

    name: str
    partition_count: int = PARTITION_COUNT
    config: Mapping[str, str] = field(default_factory=lambda: WEEK)
    is_counted: bool = True
    """False: a topic that exists may have another number of partitions; its keys meet no others."""


def compacted(name: str, partition_count: int = PARTITION_COUNT) -> Topic:
    """Return a topic that keeps the last record of each key."""
    return Topic(name, partition_count, COMPACT)
