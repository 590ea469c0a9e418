"""When the group is another than its targets are for, the assignor runs again.

Not more often than `group.consumer.assignment.interval.ms` (KIP-1263): members that arrive together
are assigned together. Until then the old targets hold.
"""

import logging
from collections import Counter

from broker.coordinator.consumer_group.assignors import range as range_assignor
from broker.coordinator.consumer_group.assignors import uniform
from broker.coordinator.consumer_group.assignors.spec import (
    RANGE,
    UNIFORM,
    GroupSpec,
    MemberSpec,
    make_spec,
)
from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.consumer_group.member import Assignment, ConsumerMember, MemberSubscription
from broker.coordinator.consumer_group.records import Target, TargetEpoch
from broker.coordinator.consumer_group.replay import write
from broker.coordinator.group.step import Step

logger = logging.getLogger(__name__)

ASSIGNORS = {UNIFORM: uniform.assign, RANGE: range_assignor.assign}

RECORD_BYTES_PER_PARTITION = 8
RECORD_BYTES_FOR_TOPICS = 1 << 17


def maybe_assign(step: Step, group: ConsumerGroup) -> bool:
    """Compute and write the targets if they are due; return whether they are up to date."""
    if group.target_epoch >= group.group_epoch:
        return True
    interval_ms = step.consumer_config(group.group_id).assignment_interval_ms
    # A clock that was set back must not keep a group waiting.
    elapsed_ms = step.now.timestamp_ms - group.assignment_timestamp_ms
    if group.assignment_timestamp_ms and 0 <= elapsed_ms < interval_ms:
        return False
    name = preferred_assignor(step, group)
    targets = ASSIGNORS[name](specification(step, group))
    most = max((sum(map(len, target.values())) for target in targets.values()), default=0)
    limit_bytes = step.shard.config.max_batch_bytes - RECORD_BYTES_FOR_TOPICS
    if most * RECORD_BYTES_PER_PARTITION > max(limit_bytes, 0):
        logger.error(
            "group cannot be assigned group=%s: %d partitions of one member do not fit a record",
            group.group_id, most,
        )  # fmt: skip
        return False
    for member_id, target in targets.items():
        if group.targets.get(member_id) != target:
            write(step, Target(group.group_id, member_id, target))
    # Last: if the batch had to be split and not all of it is kept, this is done again.
    write(step, TargetEpoch(group.group_id, group.group_epoch, step.now.timestamp_ms))
    logger.debug(
        "group assigned group=%s epoch=%d assignor=%s", group.group_id, group.group_epoch, name
    )
    return True


def preferred_assignor(step: Step, group: ConsumerGroup) -> str:
    """Return the assignor that most members ask for."""
    available = step.shard.config.consumer.assignors
    votes = Counter(member.subscription.server_assignor for member in group.members.values())
    wanted = [(-votes[name], position) for position, name in enumerate(available)]
    return available[min(wanted)[1]]


def specification(step: Step, group: ConsumerGroup) -> GroupSpec:
    """Say of the group what an assignor needs to know."""
    topics = step.shard.image().topics
    # Mostly all members subscribe to the same.
    known: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}
    members: dict[str, MemberSpec] = {}
    for member_id, member in group.members.items():
        key = member.subscription.topics
        if key not in known:
            known[key] = subscribed_topic_ids(step, group, member.subscription)
        members[member_id] = MemberSpec(known[key], group.targets.get(member_id, {}))
    topic_ids = frozenset[bytes]().union(*known.values())
    counts = {topic_id: len(topics.by_id[topic_id].partitions) for topic_id in topic_ids}
    return make_spec(members, counts)


def subscribed_topic_ids(
    step: Step, group: ConsumerGroup, subscription: MemberSubscription
) -> frozenset[bytes]:
    """Return the topics that a member subscribes to and that exist."""
    topics = step.shard.image().topics.by_name
    names = group.topics_of(subscription)
    return frozenset(topics[name].topic_id for name in names if name in topics)


def target_of(step: Step, group: ConsumerGroup, member: ConsumerMember) -> Assignment:
    """Return a member's target; without the topics it has stopped to read, if that is not new."""
    target = group.targets.get(member.member_id, {})
    if group.target_epoch >= group.group_epoch:
        return target
    subscribed = subscribed_topic_ids(step, group, member.subscription)
    return {topic_id: each for topic_id, each in target.items() if topic_id in subscribed}
