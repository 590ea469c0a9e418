"""Says in sentences what is different between two pictures of a cluster. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator

from console.watching.pictures import PartitionPicture, Picture

MANY = 3
"""So many partitions are named; of more only the count is told."""
LAG_STEPS = (100, 1_000, 10_000, 100_000, 1_000_000)
"""A group that falls behind is told of when its lag passes one of these."""

_PARTS = {
    "stopped": "was stopped",
    "paused": "was paused: its process stands still and answers nothing",
    "ready": "runs and is ready",
}

Place = tuple[str, int]
Pair = tuple[PartitionPicture, PartitionPicture]


def changes(before: Picture, after: Picture) -> list[str]:
    """Return what has happened, the cause before what follows from it."""
    pairs = {
        place: (before.partitions[place], after.partitions[place])
        for place in sorted(before.partitions.keys() & after.partitions.keys())
    }
    return [
        *_of_parts(before, after),
        *_of_brokers(before, after),
        *_of_leaders(pairs),
        *_of_replicas(pairs),
        *_of_topics(before, after),
        *_of_groups(before, after),
    ]


def _of_parts(before: Picture, after: Picture) -> Iterator[str]:
    for name, state in sorted(after.parts.items()):
        old = before.parts.get(name)
        if old is not None and old != state:
            yield f"The process {name} {_PARTS.get(state, f'is in the state: {state}')}."


def _of_brokers(before: Picture, after: Picture) -> Iterator[str]:
    for number in sorted(before.brokers.keys() - after.brokers.keys()):
        yield (
            f"Broker {number} is gone from the cluster: the controller has fenced it, "
            "and no client is sent there."
        )
    for number in sorted(after.brokers.keys() - before.brokers.keys()):
        yield f"Broker {number} is in the cluster, and catches up with the leaders."
    if after.controller not in (before.controller, -1):
        yield f"Broker {after.controller} answers for the controller (before: {before.controller})."


def _of_leaders(pairs: dict[Place, Pair]) -> Iterator[str]:
    lost = [place for place, (old, new) in pairs.items() if new.leader < 0 <= old.leader]
    if lost:
        yield (
            f"{_partitions(lost)} without leader: no replica in sync is there. "
            "Clients wait until one comes back."
        )
    found = [place for place, (old, new) in pairs.items() if old.leader < 0 <= new.leader]
    if found:
        yield f"{_partitions(found)} with a leader again."
    moves: Counter[tuple[int, int]] = Counter()
    for old, new in pairs.values():
        if -1 not in (old.leader, new.leader) and old.leader != new.leader:
            moves[old.leader, new.leader] += 1
    for (old_leader, new_leader), count in sorted(moves.items()):
        what = "1 partition" if count == 1 else f"{count} partitions"
        yield f"Broker {new_leader} leads {what} that broker {old_leader} led."


def _of_replicas(pairs: dict[Place, Pair]) -> Iterator[str]:
    gone: Counter[int] = Counter()
    back: Counter[int] = Counter()
    for old, new in pairs.values():
        gone.update(old.in_sync - new.in_sync)
        back.update(new.in_sync - old.in_sync)
    for number, count in sorted(gone.items()):
        yield (f"Broker {number} is out of sync in {_count(count)}: acks=all does not wait for it.")
    for number, count in sorted(back.items()):
        yield f"Broker {number} is in sync again in {_count(count)}."


def _count(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


def _of_topics(before: Picture, after: Picture) -> Iterator[str]:
    old = {topic for topic, _ in before.partitions}
    new = {topic for topic, _ in after.partitions}
    for topic in sorted(new - old)[:MANY]:
        yield f"The topic {topic} was created."
    for topic in sorted(old - new)[:MANY]:
        yield f"The topic {topic} was deleted."


def _of_groups(before: Picture, after: Picture) -> Iterator[str]:
    for group, lag in sorted(after.lags.items()):
        old = before.lags.get(group)
        if old is None:
            continue
        passed = [step for step in LAG_STEPS if old < step <= lag]
        if passed:
            yield f"The group {group} is {lag} records behind."
        elif lag == 0 and old >= LAG_STEPS[0]:
            yield f"The group {group} has caught up."


def _partitions(places: Iterable[Place]) -> str:
    named = [f"{topic}-{number}" for topic, number in places]
    if len(named) == 1:
        return f"{named[0]} is"
    if len(named) <= MANY:
        return f"{', '.join(named[:-1])} and {named[-1]} are"
    return f"{len(named)} partitions are"
