"""The `range` assignor: every subscriber of a topic gets an equal share of its partitions.

Members with equal subscriptions get the same partition numbers of all topics that have the same
number of partitions, so that these topics can be joined. A member keeps the lowest partitions of
its current target; the remaining partitions go, in order, to the members below their quota.
"""

from broker.coordinator.consumer_group.assignors.spec import GroupSpec, Pieces
from broker.coordinator.consumer_group.member import Assignment


def assign(spec: GroupSpec) -> Pieces[dict[str, Assignment]]:
    """Assign each topic separately."""
    subscribers: dict[bytes, list[str]] = {}
    for member_id, member in spec.members.items():
        for topic_id in member.topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
        yield len(member.topic_ids)
    targets: dict[str, dict[bytes, frozenset[int]]] = {each: {} for each in spec.members}
    for topic_id, member_ids in subscribers.items():
        for member_id, partitions in assign_topic(spec, topic_id, member_ids).items():
            if partitions:
                targets[member_id][topic_id] = frozenset(partitions)
        yield len(member_ids) + spec.partition_counts[topic_id]
    return dict(targets)


def assign_topic(spec: GroupSpec, topic_id: bytes, member_ids: list[str]) -> dict[str, list[int]]:
    """Divide one topic; the remainder of the division gives some members one partition more."""
    quota, extra_count = divmod(spec.partition_counts[topic_id], len(member_ids))
    kept: dict[str, list[int]] = {}
    quotas: dict[str, int] = {}
    for member_id in member_ids:
        had = sorted(spec.members[member_id].target.get(topic_id, ()))
        keeps_extra = len(had) > quota and extra_count > 0
        extra_count -= keeps_extra
        kept[member_id] = had[: quota + keeps_extra]
        if not keeps_extra:
            quotas[member_id] = quota
    taken = {partition for partitions in kept.values() for partition in partitions}
    left = [each for each in range(spec.partition_counts[topic_id]) if each not in taken]
    position = 0
    for member_id, member_quota in quotas.items():
        gets_extra = extra_count > 0
        extra_count -= gets_extra
        end = position + member_quota + gets_extra - len(kept[member_id])
        kept[member_id] += left[position:end]
        position = end
    return kept
