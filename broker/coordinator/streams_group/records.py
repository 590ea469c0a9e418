"""The records of streams groups in `__consumer_offsets`, in Kafka's own schemas.

The types of keys: 17 the group's epoch, 19 a member, 20 the epoch of the targets, 21 a member's
target, 22 a member's current tasks, 23 the topology. A tombstone removes what its key names; the
tombstone of type 19 is the last one of a member. Type 18 is not in use.

Each class below encodes itself (`encoded`), and `decode_record` decodes it. `streams_group.py` has
the effect of each record on a group. Warm-up tasks, which Apache Kafka 4.3 does not assign, are
written as none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from broker.coordinator.group_state.group_records import (
    GroupRecord,
    MemberRecord,
    TargetEpochRecord,
    by_partition,
    by_type,
    decode_with,
)
from broker.coordinator.streams_group.member import (
    NO_TOPOLOGY_EPOCH,
    STANDBY_EPOCH,
    CurrentAssignment,
    Held,
    HeldTasks,
    MemberMetadata,
    MemberState,
    Target,
    Tasks,
)
from broker.coordinator.streams_group.topology import StreamsTopology, topology_of
from common.kafka.protocol.messages.streams_group_heartbeat import Endpoint, KeyValue, Topology
from common.kafka.protocol.records.streams_group import (
    CurrentTaskIds,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    TargetTaskIds,
)


@dataclass(frozen=True, slots=True)
class GroupEpoch(GroupRecord):
    """The epoch of a group, and what it depends on; a tombstone removes the group."""

    KEY: ClassVar = StreamsGroupMetadataKey
    VALUE: ClassVar = StreamsGroupMetadataValue
    group_id: str
    content: int | None
    metadata_hash: int = 0
    validated_topology_epoch: int = NO_TOPOLOGY_EPOCH
    assignment_configs: Mapping[str, str] = field(default_factory=dict)

    def value(self) -> StreamsGroupMetadataValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        configs = sorted(self.assignment_configs.items())
        return StreamsGroupMetadataValue(
            epoch=self.content,
            metadata_hash=self.metadata_hash,
            validated_topology_epoch=self.validated_topology_epoch,
            last_assignment_configs=[KeyValue(key=key, value=text) for key, text in configs],
        )

    @staticmethod
    def content_of(value: StreamsGroupMetadataValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        configs = {each.key: each.value for each in value.last_assignment_configs or ()}
        return (value.epoch, value.metadata_hash, value.validated_topology_epoch, configs)


@dataclass(frozen=True, slots=True)
class Member(MemberRecord):
    """What a member says about itself; a tombstone removes the member."""

    KEY: ClassVar = StreamsGroupMemberMetadataKey
    VALUE: ClassVar = StreamsGroupMemberMetadataValue
    group_id: str
    member_id: str
    content: MemberMetadata | None

    def value(self) -> StreamsGroupMemberMetadataValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return _member(self.content)

    @staticmethod
    def content_of(value: StreamsGroupMemberMetadataValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        return (_metadata(value),)


@dataclass(frozen=True, slots=True)
class TargetEpoch(TargetEpochRecord):
    """The group epoch that the targets were computed for; a tombstone removes it."""

    KEY: ClassVar = StreamsGroupTargetAssignmentMetadataKey
    VALUE: ClassVar = StreamsGroupTargetAssignmentMetadataValue
    group_id: str
    content: int | None
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class TargetAssignment(MemberRecord):
    """The tasks that a member shall have; a tombstone removes them."""

    KEY: ClassVar = StreamsGroupTargetAssignmentMemberKey
    VALUE: ClassVar = StreamsGroupTargetAssignmentMemberValue
    group_id: str
    member_id: str
    content: Target | None

    def value(self) -> StreamsGroupTargetAssignmentMemberValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return StreamsGroupTargetAssignmentMemberValue(
            active_tasks=_target_tasks(self.content.active),
            standby_tasks=_target_tasks(self.content.standby),
        )

    @staticmethod
    def content_of(value: StreamsGroupTargetAssignmentMemberValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        active = _decode_target_tasks(value.active_tasks)
        return (Target(active, _decode_target_tasks(value.standby_tasks)),)


@dataclass(frozen=True, slots=True)
class Current(MemberRecord):
    """The tasks that a member has; a tombstone removes them."""

    KEY: ClassVar = StreamsGroupCurrentMemberAssignmentKey
    VALUE: ClassVar = StreamsGroupCurrentMemberAssignmentValue
    group_id: str
    member_id: str
    content: CurrentAssignment | None

    def value(self) -> StreamsGroupCurrentMemberAssignmentValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        assigned, pending = self.content.assigned, self.content.pending_revocation
        return StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=self.content.member_epoch,
            previous_member_epoch=self.content.previous_member_epoch,
            state=self.content.state,
            active_tasks=_held(assigned.active, has_epochs=True),
            standby_tasks=_held(assigned.standby, has_epochs=False),
            active_tasks_pending_revocation=_held(pending.active, has_epochs=True),
            standby_tasks_pending_revocation=_held(pending.standby, has_epochs=False),
        )

    @staticmethod
    def content_of(value: StreamsGroupCurrentMemberAssignmentValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        is_known = value.state in MemberState.__members__.values()
        epoch = value.member_epoch
        current = CurrentAssignment(
            epoch,
            value.previous_member_epoch,
            MemberState(value.state) if is_known else MemberState.UNKNOWN,
            Held(
                _decode_held(value.active_tasks, epoch),
                _decode_held(value.standby_tasks, STANDBY_EPOCH),
            ),
            Held(
                _decode_held(value.active_tasks_pending_revocation, epoch),
                _decode_held(value.standby_tasks_pending_revocation, STANDBY_EPOCH),
            ),
        )
        return (current,)


@dataclass(frozen=True, slots=True)
class GroupTopology(GroupRecord):
    """The topology of a group; a tombstone removes it."""

    KEY: ClassVar = StreamsGroupTopologyKey
    VALUE: ClassVar = StreamsGroupTopologyValue
    group_id: str
    content: StreamsTopology | None

    def value(self) -> StreamsGroupTopologyValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return StreamsGroupTopologyValue(
            epoch=self.content.epoch, subtopologies=list(self.content.subtopologies.values())
        )

    @staticmethod
    def content_of(value: StreamsGroupTopologyValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        topology = Topology(epoch=value.epoch, subtopologies=value.subtopologies)
        return (topology_of(topology),)


StreamsGroupRecord = GroupEpoch | Member | TargetEpoch | TargetAssignment | Current | GroupTopology
_TYPES: Mapping[int, type[StreamsGroupRecord]] = by_type(
    (GroupEpoch, Member, TargetEpoch, TargetAssignment, Current, GroupTopology)
)


def decode_record(key: bytes, value: bytes | None) -> StreamsGroupRecord | None:
    """Decode a record; return None for other types; raise DecodeError for a damaged record."""
    return decode_with(_TYPES, key, value)


def _member(metadata: MemberMetadata) -> StreamsGroupMemberMetadataValue:
    endpoint = metadata.user_endpoint
    return StreamsGroupMemberMetadataValue(
        instance_id=None,
        rack_id=metadata.rack_id,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        rebalance_timeout_ms=metadata.rebalance_timeout_ms,
        topology_epoch=metadata.topology_epoch,
        process_id=metadata.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[KeyValue(key=key, value=text) for key, text in metadata.client_tags],
    )


def _target_tasks(tasks: Tasks) -> list[TargetTaskIds]:
    return [
        TargetTaskIds(subtopology_id=name, partitions=sorted(partitions))
        for name, partitions in sorted(tasks.items())
    ]


def _held(tasks: HeldTasks, *, has_epochs: bool) -> list[CurrentTaskIds]:
    return [
        CurrentTaskIds(
            subtopology_id=name,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[each] for each in sorted(partitions)]
            if has_epochs
            else None,
        )
        for name, partitions in sorted(tasks.items())
    ]


def _metadata(value: StreamsGroupMemberMetadataValue) -> MemberMetadata:
    endpoint = value.user_endpoint
    return MemberMetadata(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags=tuple((each.key, each.value) for each in value.client_tags),
    )


def _decode_target_tasks(tasks: list[TargetTaskIds]) -> Tasks:
    return {each.subtopology_id: frozenset(each.partitions) for each in tasks if each.partitions}


def _decode_held(tasks: list[CurrentTaskIds], default_epoch: int) -> HeldTasks:
    """Decode tasks; those without epochs get the default."""
    held: dict[str, dict[int, int]] = {}
    for each in tasks:
        partitions = by_partition(each.partitions, each.assignment_epochs, default_epoch, "tasks")
        if partitions:
            held[each.subtopology_id] = partitions
    return held
