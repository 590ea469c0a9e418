"""The `simple` assignor: every partition has about the same number of members, and vice versa.

With at least as many partitions as members each partition has one member. Otherwise each partition
is shared by ceil(members / partitions) members, or one fewer where the numbers leave no other way.
If the members subscribe to different topics, each topic is assigned on its own among its
subscribers. A member keeps the partitions it has, as long as it has no more than its part and the
partition has no more members than its part. Source: Apache Kafka's SimpleAssignor.

Invariants: a partition has at least one member if it has a subscriber, and at most
ceil(subscribers / partitions).
"""

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from broker.coordinator.consumer_group.assignors.spec import MemberSpec, Pieces
from broker.coordinator.consumer_group.member import Assignment


class Place(NamedTuple):
    """A partition of a topic."""

    topic_id: bytes
    partition: int


Assignable: TypeAlias = Mapping[bytes, Sequence[int]]
"""The partitions that may be assigned, ascending, by topic id."""


def assign(
    members: Mapping[str, MemberSpec], assignable: Assignable
) -> Pieces[dict[str, Assignment]]:
    """Compute the target of every member."""
    found: dict[str, set[Place]] = {member_id: set() for member_id in sorted(members)}
    topics = sorted({topic_id for spec in members.values() for topic_id in spec.topic_ids})
    is_homogeneous = len({spec.topic_ids for spec in members.values()}) <= 1
    for together in [topics] if is_homogeneous else [[topic_id] for topic_id in topics]:
        places = [
            Place(topic_id, partition)
            for topic_id in together
            for partition in assignable.get(topic_id, ())
        ]
        subscribers = {
            member_id: members[member_id].target
            for member_id in found
            if members[member_id].topic_ids.issuperset(together)
        }
        yield from _share(places, subscribers, found)
    return {member_id: _by_topic(places) for member_id, places in found.items()}


def _share(
    places: list[Place], subscribers: Mapping[str, Assignment], found: dict[str, set[Place]]
) -> Generator[int, None, None]:
    """Assign some partitions to those members that all subscribe to their topics."""
    if not places or not subscribers:
        return
    sharing = -(-len(subscribers) // len(places))
    parts = _parts(sharing * len(places), len(subscribers))
    holders: dict[Place, list[str]] = {place: [] for place in places}
    unfilled: deque[tuple[str, int]] = deque()
    """The members that have not their part yet, and how many partitions they lack."""
    for (member_id, before), part in zip(subscribers.items(), parts, strict=True):
        for place in _known(before, holders):
            if part and len(holders[place]) < sharing:
                holders[place].append(member_id)
                part -= 1
            yield 1
        if part:
            unfilled.append((member_id, part))
    for place, members in holders.items():
        yield _fill(members, sharing, unfilled)
        for member_id in members:
            found[member_id].add(place)


def _parts(whole: int, count: int) -> list[int]:
    """Divide a number of assignments into equal parts, which differ by one at most."""
    return [-(-whole * (n + 1) // count) + (-whole * n // count) for n in range(count)]


def _known(before: Assignment, places: Mapping[Place, object]) -> list[Place]:
    """Return the partitions that a member has and that may still be assigned, in one order."""
    return [
        place
        for topic_id, partitions in sorted(before.items())
        for partition in sorted(partitions)
        if (place := Place(topic_id, partition)) in places
    ]


def _fill(members: list[str], sharing: int, unfilled: deque[tuple[str, int]]) -> int:
    """Give a partition to more members, and return how many were looked at.

    A member that was looked at goes to the end of the queue, so that all get some.
    """
    for looked_at in range(len(unfilled)):
        if len(members) >= sharing:
            return looked_at
        member_id, lacking = unfilled.popleft()
        if member_id not in members:
            members.append(member_id)
            lacking -= 1
        if lacking:
            unfilled.append((member_id, lacking))
    return len(unfilled)


def _by_topic(places: set[Place]) -> Assignment:
    by_topic: dict[bytes, set[int]] = {}
    for topic_id, partition in sorted(places):
        by_topic.setdefault(topic_id, set()).add(partition)
    return {topic_id: frozenset(partitions) for topic_id, partitions in by_topic.items()}
