"""The effect of each record on the groups, and `write`, which appends a record and applies it."""

from broker.coordinator.consumer_group.consumer_group import ConsumerGroup
from broker.coordinator.consumer_group.records import (
    ConsumerGroupRecord,
    Current,
    GroupEpoch,
    MemberMetadata,
    Regex,
    Target,
    TargetEpoch,
)
from broker.coordinator.group_state.step import Step


def write(step: Step, record: ConsumerGroupRecord) -> None:
    """Append a record and apply it. Only this function changes the persisted state of a group."""
    step.append(record.encoded())
    replay(step.shard.of(ConsumerGroup), record)


def replay(groups: dict[str, ConsumerGroup], record: ConsumerGroupRecord) -> None:
    """Apply one record. A tombstone of something that does not exist has no effect."""
    group = groups.get(record.group_id)
    if group is None:
        if record.content is None:
            return
        group = groups[record.group_id] = ConsumerGroup(record.group_id)
    match record:
        case GroupEpoch():
            replay_epoch(groups, group, record)
        case MemberMetadata():
            group.replay_subscription(record.member_id, record.content)
        case TargetEpoch():
            group.target_epoch = record.content or 0
            group.assignment_timestamp_ms = record.timestamp_ms
        case Target():
            group.replay_target(record.member_id, record.content)
        case Current():
            group.replay_current(record.member_id, record.content)
        case Regex():
            group.replay_regex(record.pattern, record.content)


def replay_epoch(
    groups: dict[str, ConsumerGroup], group: ConsumerGroup, record: GroupEpoch
) -> None:
    """Set the epoch of a group, or remove the group."""
    if record.content is None:
        del groups[record.group_id]
    else:
        group.group_epoch, group.metadata_hash = record.content, record.metadata_hash
