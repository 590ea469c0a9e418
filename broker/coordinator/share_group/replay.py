"""The effect of each record on the groups, and `write`, which appends a record and applies it."""

from broker.coordinator.group_state.step import Step
from broker.coordinator.share_group.records import (
    ShareCurrent,
    ShareGroupEpoch,
    ShareGroupRecord,
    ShareMemberMetadata,
    ShareStatePartitions,
    ShareTarget,
    ShareTargetEpoch,
)
from broker.coordinator.share_group.share_group import ShareGroup
from broker.coordinator.share_group.state_partitions import StatePartitions


def write(step: Step, record: ShareGroupRecord) -> None:
    """Append a record and apply it. Only this function changes the persisted state of a group."""
    step.append(record.encoded())
    replay(step.shard.of(ShareGroup), record)


def replay(groups: dict[str, ShareGroup], record: ShareGroupRecord) -> None:
    """Apply one record. A tombstone of something that does not exist has no effect."""
    group = groups.get(record.group_id)
    if group is None:
        if record.content is None:
            return
        group = groups[record.group_id] = ShareGroup(record.group_id)
    match record:
        case ShareMemberMetadata():
            group.replay_subscription(record.member_id, record.content)
        case ShareGroupEpoch():
            if record.content is None:
                del groups[record.group_id]
            else:
                group.group_epoch, group.metadata_hash = record.content, record.metadata_hash
        case ShareTargetEpoch():
            group.target_epoch = record.content or 0
            group.assignment_timestamp_ms = record.timestamp_ms
        case ShareTarget():
            group.replay_target(record.member_id, record.content)
        case ShareCurrent():
            group.replay_current(record.member_id, record.content)
        case ShareStatePartitions():
            group.states = record.content or StatePartitions()
