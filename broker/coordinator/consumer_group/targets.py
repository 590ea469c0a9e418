"""When the assignor runs: if the group epoch is newer than the epoch of the targets.

It runs at most once per `group.consumer.assignment.interval.ms` (KIP-1263), so that members that
arrive together are assigned together. Until then the old targets hold.

The computation is interruptible, so that an assignment of a thousand members and ten thousand
partitions does not block other requests. The targets are for the epoch in which it began; if the
group epoch has grown meanwhile, it runs again.
"""

import logging
from collections import Counter
from collections.abc import Mapping

from broker.coordinator.consumer_group.assignors import range as range_assignor
from broker.coordinator.consumer_group.assignors import uniform
from broker.coordinator.consumer_group.assignors.spec import MemberSpec, Pieces, make_spec
from broker.coordinator.consumer_group.consumer_group import ConsumerDeadline, ConsumerGroup
from broker.coordinator.consumer_group.member import Assignment, ConsumerMember, MemberSubscription
from broker.coordinator.consumer_group.new_targets import NewTargets, fits_records
from broker.coordinator.consumer_group.records import Target, TargetEpoch
from broker.coordinator.consumer_group.replay import write
from broker.coordinator.group_state.config import RANGE, UNIFORM
from broker.coordinator.group_state.modern_group import completed, is_early
from broker.coordinator.group_state.step import Step

logger = logging.getLogger(__name__)

ASSIGNORS = {UNIFORM: uniform.assign, RANGE: range_assignor.assign}


def maybe_assign(step: Step, group: ConsumerGroup) -> bool:
    """Compute and write the targets if they are due; return True if they are up to date.

    A long computation continues at the next deadline.
    """
    if group.target_epoch >= group.group_epoch:
        return True
    interval_ms = step.consumer_config(group.group_id).assignment_interval_ms
    if group.new_targets is not None or is_early(step, group.assignment_timestamp_ms, interval_ms):
        return False
    group.new_targets = begin_to_assign(step, group)
    go_on_assigning(step, group)
    return group.target_epoch >= group.group_epoch


def begin_to_assign(step: Step, group: ConsumerGroup) -> NewTargets:
    """Return the computation of the targets, with a copy of the group's present state."""
    assignor = preferred_assignor(step, group)
    return NewTargets(
        group_id=group.group_id,
        epoch=group.group_epoch,
        assignor=assignor,
        before=dict(group.targets),
        encode=lambda member_id, target: Target(group.group_id, member_id, target).encoded(),
        static_member_ids=dict(group.static_member_ids),
    ).of(assign(assignor, *known_of(step, group)))


def assign(
    assignor: str, members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> Pieces[dict[str, Assignment]]:
    """Compute the target of every member with an assignor."""
    spec = yield from make_spec(members, partition_counts)
    return (yield from ASSIGNORS[assignor](spec))


def go_on_assigning(step: Step, group: ConsumerGroup) -> None:
    """Continue the computation, and write the targets when it is done."""
    new = completed(step, group, ConsumerDeadline.ASSIGNING)
    if new is None:
        return
    if not fits_records(new, step.shard.config.max_batch_bytes):
        logger.error(
            "group cannot be assigned group=%s: %d partitions of one member do not fit a record",
            group.group_id, new.most_partitions,
        )  # fmt: skip
        return
    write_targets(step, group, new)
    logger.debug(
        "group assigned group=%s epoch=%d assignor=%s", group.group_id, new.epoch, new.assignor
    )


def write_targets(step: Step, group: ConsumerGroup, new: NewTargets) -> None:
    """Write the targets of the members that are still in the group.

    A member that joined meanwhile has no target yet; a static one gets its predecessor's.
    """
    for member_id, record in new.records.items():
        if member_id in group.members:
            step.append(record)
            group.replay_target(member_id, new.targets[member_id])
    for instance_id, before in new.static_member_ids.items():
        member_id = group.static_member_ids.get(instance_id, before)
        if member_id != before and before in new.targets:
            write(step, Target(group.group_id, member_id, new.targets[before]))
    # This record is the last one: if the batches are split and only some of them are kept, the
    # computation runs again.
    write(step, TargetEpoch(group.group_id, new.epoch, step.now.timestamp_ms))


def preferred_assignor(step: Step, group: ConsumerGroup) -> str:
    """Return the assignor that most members ask for; the first configured one by default."""
    available = step.shard.config.consumer.assignors
    votes = Counter(member.subscription.server_assignor for member in group.members.values())
    wanted = [(-votes[name], position) for position, name in enumerate(available)]
    return available[min(wanted)[1]]


def known_of(step: Step, group: ConsumerGroup) -> tuple[dict[str, MemberSpec], dict[bytes, int]]:
    """Return an assignor's input: the members, and the number of partitions of each topic."""
    topics = step.shard.image().topics
    # Usually all members have the same subscription.
    known: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}
    members: dict[str, MemberSpec] = {}
    for member_id, member in group.members.items():
        key = member.subscription.topics
        if key not in known:
            known[key] = subscribed_topic_ids(step, group, member.subscription)
        members[member_id] = MemberSpec(known[key], group.targets.get(member_id, {}))
    topic_ids = frozenset[bytes]().union(*known.values())
    counts = {topic_id: len(topics.by_id[topic_id].partitions) for topic_id in topic_ids}
    return members, counts


def subscribed_topic_ids(
    step: Step, group: ConsumerGroup, subscription: MemberSubscription
) -> frozenset[bytes]:
    """Return the ids of the existing topics that a member subscribes to."""
    topics = step.shard.image().topics.by_name
    names = group.topics_of(subscription)
    return frozenset(topics[name].topic_id for name in names if name in topics)


def target_of(step: Step, group: ConsumerGroup, member: ConsumerMember) -> Assignment:
    """Return a member's target. If the target is outdated, leave out topics it has dropped."""
    target = group.targets.get(member.member_id, {})
    if group.target_epoch >= group.group_epoch:
        return target
    subscribed = subscribed_topic_ids(step, group, member.subscription)
    return {topic_id: each for topic_id, each in target.items() if topic_id in subscribed}
