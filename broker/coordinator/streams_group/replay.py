"""The effect of each record on the groups, and `write`, which appends a record and applies it."""

from broker.coordinator.group_state.step import Step
from broker.coordinator.streams_group.records import (
    Current,
    GroupEpoch,
    GroupTopology,
    Member,
    StreamsGroupRecord,
    TargetAssignment,
    TargetEpoch,
)
from broker.coordinator.streams_group.streams_group import INITIAL_EPOCH, StreamsGroup


def write(step: Step, record: StreamsGroupRecord) -> None:
    """Append a record and apply it. Only this function changes the persisted state of a group."""
    step.append(record.encoded())
    replay(step.shard.of(StreamsGroup), record)


def replay(groups: dict[str, StreamsGroup], record: StreamsGroupRecord) -> None:
    """Apply one record. A tombstone of something that does not exist has no effect."""
    group = groups.get(record.group_id)
    if group is None:
        if record.content is None:
            return
        group = groups[record.group_id] = StreamsGroup(record.group_id)
    match record:
        case GroupEpoch():
            replay_epoch(groups, group, record)
        case Member():
            group.replay_metadata(record.member_id, record.content)
        case TargetEpoch():
            group.target_epoch = INITIAL_EPOCH if record.content is None else record.content
            group.assignment_timestamp_ms = record.timestamp_ms
        case TargetAssignment():
            group.replay_target(record.member_id, record.content)
        case Current():
            group.replay_current(record.member_id, record.content)
        case GroupTopology():
            group.replay_topology(record.content)


def replay_epoch(groups: dict[str, StreamsGroup], group: StreamsGroup, record: GroupEpoch) -> None:
    """Set the epoch of a group, or remove the group."""
    if record.content is None:
        del groups[record.group_id]
        return
    group.group_epoch, group.metadata_hash = record.content, record.metadata_hash
    group.validated_topology_epoch = record.validated_topology_epoch
    group.assignment_configs = record.assignment_configs
