"""When the assignor runs: if the group epoch is newer than the epoch of the targets.

It runs at most once per `group.share.assignment.interval.ms`, and assigns only partitions that have
state. The computation is interruptible (`NewTargets`).
"""

import logging

from broker.coordinator.consumer_group.assignors.spec import MemberSpec
from broker.coordinator.consumer_group.member import Assignment
from broker.coordinator.consumer_group.new_targets import NewTargets, fits_records
from broker.coordinator.group_state.config import ASSIGNOR
from broker.coordinator.group_state.modern_group import completed, is_early
from broker.coordinator.group_state.step import Step
from broker.coordinator.share_group.records import ShareCurrent, ShareTarget, ShareTargetEpoch
from broker.coordinator.share_group.replay import write
from broker.coordinator.share_group.share_group import (
    ShareAssignment,
    ShareDeadline,
    ShareGroup,
    ShareMember,
)
from broker.coordinator.share_group.simple_assignor import Assignable, assign

logger = logging.getLogger(__name__)


def maybe_assign(step: Step, group: ShareGroup) -> bool:
    """Compute and write the targets if they are due; return True if they are up to date."""
    if group.target_epoch >= group.group_epoch:
        return True
    interval_ms = step.share_config(group.group_id).assignment_interval_ms
    if group.new_targets is not None or is_early(step, group.assignment_timestamp_ms, interval_ms):
        return False
    group.new_targets = NewTargets(
        group_id=group.group_id,
        epoch=group.group_epoch,
        assignor=ASSIGNOR,
        before=dict(group.targets),
        encode=lambda member_id, target: ShareTarget(group.group_id, member_id, target).encoded(),
    ).of(assign(specs_of(step, group), assignable(step, group)))
    go_on_assigning(step, group)
    return group.target_epoch >= group.group_epoch


def go_on_assigning(step: Step, group: ShareGroup) -> None:
    """Continue the computation, and write the targets when it is done."""
    new = completed(step, group, ShareDeadline.ASSIGNING)
    if new is None:
        return
    if not fits_records(new, step.shard.config.max_batch_bytes):
        logger.error("group cannot be assigned group=%s: too many partitions", group.group_id)
        return
    for member_id, record in new.records.items():
        if member_id in group.members:
            step.append(record)
            group.replay_target(member_id, new.targets[member_id])
    # This record is the last one: if the batches are split and only some of them are kept, the
    # computation runs again.
    write(step, ShareTargetEpoch(group.group_id, new.epoch, step.now.timestamp_ms))


def specs_of(step: Step, group: ShareGroup) -> dict[str, MemberSpec]:
    """Return the members as the assignor sees them."""
    topics = step.shard.image().topics.by_name
    known: dict[frozenset[str], frozenset[bytes]] = {}  # Usually all have the same subscription.
    for member in group.members.values():
        names = member.subscription.topic_names
        if names not in known:
            known[names] = frozenset(topics[name].topic_id for name in names if name in topics)
    return {
        member_id: MemberSpec(
            known[member.subscription.topic_names], group.targets.get(member_id, {})
        )
        for member_id, member in group.members.items()
    }


def assignable(step: Step, group: ShareGroup) -> Assignable:
    """Return the partitions that have state, of the topics that exist."""
    by_id = step.shard.image().topics.by_id
    return {
        topic_id: sorted(named.partitions)
        for topic_id, named in group.states.initialized.items()
        if topic_id in by_id
    }


def is_waiting_for_epoch(step: Step, group: ShareGroup) -> bool:
    """Return True if partitions have state that the targets, though up to date, do not have."""
    if not group.members or group.target_epoch < group.group_epoch:
        return False
    topics = step.shard.image().topics.by_id
    assigned: dict[bytes, set[int]] = {}
    for target in group.targets.values():
        for topic_id, partitions in target.items():
            assigned.setdefault(topic_id, set()).update(partitions)
    return any(
        topic_id in topics
        and topics[topic_id].name in group.topic_counts
        and assigned.get(topic_id, set()) != named.partitions
        for topic_id, named in group.states.initialized.items()
    )


def follow_target(step: Step, group: ShareGroup, member: ShareMember, *, has_changed: bool) -> None:
    """Give a member its target, and write the result; `has_changed` if the group epoch has."""
    current = member.current
    if not has_changed and current.member_epoch == group.target_epoch:
        return
    following = ShareAssignment(
        group.target_epoch,
        current.previous_member_epoch
        if current.member_epoch == group.target_epoch
        else current.member_epoch,
        target_of(step, group, member),
    )
    if following != current:
        write(step, ShareCurrent(group.group_id, member.member_id, following))


def target_of(step: Step, group: ShareGroup, member: ShareMember) -> Assignment:
    """Return a member's target, without topics that it does not subscribe to."""
    topics = step.shard.image().topics.by_id
    names = member.subscription.topic_names
    return {
        topic_id: partitions
        for topic_id, partitions in group.targets.get(member.member_id, {}).items()
        if topic_id in topics and topics[topic_id].name in names
    }
