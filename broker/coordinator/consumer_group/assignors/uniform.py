"""The `uniform` assignor: all members get nearly the same number of partitions, over all topics.

If all members subscribe to the same topics, the numbers differ by at most one, and the members that
already have the most get the extra partition. Otherwise `uniform_mixed` computes the assignment.
"""

from collections import deque

from broker.coordinator.consumer_group.assignors import uniform_mixed
from broker.coordinator.consumer_group.assignors.spec import GroupSpec, Pieces
from broker.coordinator.consumer_group.member import Assignment


def assign(spec: GroupSpec) -> Pieces[dict[str, Assignment]]:
    """Assign all topics together."""
    if not spec.is_homogeneous:
        return (yield from uniform_mixed.assign(spec))
    if not spec.members:
        return {}
    topic_ids = next(iter(spec.members.values())).topic_ids
    quotas = compute_quotas(spec, sum(spec.partition_counts[each] for each in topic_ids))
    targets: dict[str, dict[bytes, set[int]]] = {}
    missing: dict[str, int] = {}
    for member_id, member in spec.members.items():
        room = quotas[member_id]
        target: dict[bytes, set[int]] = {}
        for topic_id, partitions in sorted(member.target.items()):
            if room:
                target[topic_id] = set(sorted(partitions)[:room])
                room -= len(target[topic_id])
        targets[member_id] = target
        if room:
            missing[member_id] = room
        yield quotas[member_id] + len(target)
    yield from fill(spec, targets, missing)
    frozen: dict[str, Assignment] = {}
    for member_id, target in targets.items():
        frozen[member_id] = {topic_id: frozenset(each) for topic_id, each in target.items()}
        yield quotas[member_id]
    return frozen


def compute_quotas(spec: GroupSpec, partition_count: int) -> dict[str, int]:
    """Return the number of partitions of each member; the largest members get the extra one."""
    quota, extra_count = divmod(partition_count, len(spec.members))
    sizes = {
        member_id: sum(map(len, member.target.values()))
        for member_id, member in spec.members.items()
    }
    by_size = sorted(sizes, key=lambda member_id: -sizes[member_id])
    return {
        member_id: quota + (position < extra_count) for position, member_id in enumerate(by_size)
    }


def fill(
    spec: GroupSpec, targets: dict[str, dict[bytes, set[int]]], missing: dict[str, int]
) -> Pieces[None]:
    """Give the unassigned partitions to the members below their quota."""
    taken: dict[bytes, set[int]] = {}
    for target in targets.values():
        for topic_id, partitions in target.items():
            taken.setdefault(topic_id, set()).update(partitions)
        yield len(target)
    left = deque[tuple[bytes, list[int]]]()
    for topic_id, count in sorted(spec.partition_counts.items()):
        free = sorted(set(range(count)) - taken.get(topic_id, set()))
        if free:
            left.append((topic_id, free))
        yield count
    for member_id, room in missing.items():
        target = targets[member_id]
        while room:
            topic_id, free = left.popleft()
            target.setdefault(topic_id, set()).update(free[:room])
            if len(free) > room:
                left.appendleft((topic_id, free[room:]))
            room = max(room - len(free), 0)
        yield missing[member_id]
    assert not left, "a partition was left over"
