"""Which partitions the probe's topic must have, so that every broker leads one.

A broker leads a partition if it is the first of its replicas. A partition is never removed: one
that a broker does not need (it has another one, or it is gone) is moved to one that lacks one, and
only then are partitions added.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

Replicas = list[int]


class ProbeSettings(NamedTuple):
    """How to probe."""

    topic: str = "millstream-probe"
    replica_count: int = 3
    interval_seconds: float = 0.8
    lost_seconds: float = 5.0
    """A message that takes longer is lost."""


class Changes(NamedTuple):
    """What to change in the topic; nothing if all three are empty."""

    create: list[Replicas]
    """The partitions of a topic that does not exist."""
    add: list[Replicas]
    move: dict[int, Replicas]


def changes(
    brokers: Sequence[int], partitions: Mapping[int, Sequence[int]] | None, replica_count: int
) -> Changes:
    """Return the changes; `partitions` has the replicas of each, None without the topic."""
    order = sorted(brokers)
    if partitions is None:
        return Changes([_replicas(each, order, replica_count) for each in order], [], {})
    led: set[int] = set()
    spare = []
    for number, replicas in sorted(partitions.items()):
        first = replicas[0] if replicas else None
        if first in order and first not in led:
            led.add(first)
        else:
            spare.append(number)
    lacking = [each for each in order if each not in led]
    move = {
        number: _replicas(each, order, replica_count)
        for number, each in zip(spare, lacking, strict=False)
    }
    added = [_replicas(each, order, replica_count) for each in lacking[len(spare) :]]
    return Changes([], added, move)


def _replicas(leader: int, order: Sequence[int], replica_count: int) -> Replicas:
    """Return the leader and the brokers after it."""
    at = order.index(leader)
    return [order[(at + n) % len(order)] for n in range(min(replica_count, len(order)))]
