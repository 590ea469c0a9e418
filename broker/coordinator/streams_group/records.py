"""The records of streams groups in `__consumer_offsets`, in Kafka's own schemas.

The types of keys: 17 the group's epoch, 19 a member, 20 the epoch of the targets, 21 a member's
target, 22 a member's current tasks, 23 the topology. A tombstone removes what its key names; the
tombstone of type 19 is the last one of a member. Type 18 is not in use.

Each class below encodes itself (`encoded`), and `decode_record` decodes it. `streams_group.py` has
the effect of each record on a group. Warm-up tasks, which Apache Kafka 4.3 does not assign, are
written as none.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broker.coordinator.group_state.group_records import by_partition, decode_with, encode
from broker.coordinator.output import CoordinatorRecord
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
from common.kafka.protocol.structs import decode_struct


@dataclass(frozen=True, slots=True)
class GroupEpoch:
    """The epoch of a group, and what it depends on; epoch None removes the group."""

    group_id: str
    epoch: int | None
    metadata_hash: int = 0
    validated_topology_epoch: int = NO_TOPOLOGY_EPOCH
    assignment_configs: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        value = None
        if self.epoch is not None:
            value = StreamsGroupMetadataValue(
                epoch=self.epoch,
                metadata_hash=self.metadata_hash,
                validated_topology_epoch=self.validated_topology_epoch,
                last_assignment_configs=[
                    KeyValue(key=key, value=text)
                    for key, text in sorted(self.assignment_configs.items())
                ],
            )
        return encode(StreamsGroupMetadataKey(group_id=self.group_id), value)


@dataclass(frozen=True, slots=True)
class Member:
    """What a member says about itself; None removes the member."""

    group_id: str
    member_id: str
    metadata: MemberMetadata | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        key = StreamsGroupMemberMetadataKey(group_id=self.group_id, member_id=self.member_id)
        return encode(key, None if self.metadata is None else _member(self.metadata))


@dataclass(frozen=True, slots=True)
class TargetEpoch:
    """The group epoch that the targets were computed for; None removes it."""

    group_id: str
    epoch: int | None
    timestamp_ms: int = 0

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        value = None
        if self.epoch is not None:
            value = StreamsGroupTargetAssignmentMetadataValue(
                assignment_epoch=self.epoch, assignment_timestamp=self.timestamp_ms
            )
        return encode(StreamsGroupTargetAssignmentMetadataKey(group_id=self.group_id), value)


@dataclass(frozen=True, slots=True)
class TargetAssignment:
    """The tasks that a member shall have; None removes them."""

    group_id: str
    member_id: str
    target: Target | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        value = None
        if self.target is not None:
            value = StreamsGroupTargetAssignmentMemberValue(
                active_tasks=_target_tasks(self.target.active),
                standby_tasks=_target_tasks(self.target.standby),
            )
        key = StreamsGroupTargetAssignmentMemberKey(
            group_id=self.group_id, member_id=self.member_id
        )
        return encode(key, value)


@dataclass(frozen=True, slots=True)
class Current:
    """The tasks that a member has; None removes them."""

    group_id: str
    member_id: str
    current: CurrentAssignment | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        value = None
        if self.current is not None:
            assigned, pending = self.current.assigned, self.current.pending_revocation
            value = StreamsGroupCurrentMemberAssignmentValue(
                member_epoch=self.current.member_epoch,
                previous_member_epoch=self.current.previous_member_epoch,
                state=self.current.state,
                active_tasks=_held(assigned.active, has_epochs=True),
                standby_tasks=_held(assigned.standby, has_epochs=False),
                active_tasks_pending_revocation=_held(pending.active, has_epochs=True),
                standby_tasks_pending_revocation=_held(pending.standby, has_epochs=False),
            )
        key = StreamsGroupCurrentMemberAssignmentKey(
            group_id=self.group_id, member_id=self.member_id
        )
        return encode(key, value)


@dataclass(frozen=True, slots=True)
class GroupTopology:
    """The topology of a group; None removes it."""

    group_id: str
    topology: StreamsTopology | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        value = None
        if self.topology is not None:
            value = StreamsGroupTopologyValue(
                epoch=self.topology.epoch,
                subtopologies=list(self.topology.subtopologies.values()),
            )
        return encode(StreamsGroupTopologyKey(group_id=self.group_id), value)


StreamsGroupRecord = GroupEpoch | Member | TargetEpoch | TargetAssignment | Current | GroupTopology


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


def decode_record(key: bytes, value: bytes | None) -> StreamsGroupRecord | None:
    """Decode a record; return None for other types; raise DecodeError for a damaged record."""
    return decode_with(DECODERS, key, value)


def _decode_group_epoch(key: bytes, value: bytes | None) -> GroupEpoch:
    group_id = decode_struct(StreamsGroupMetadataKey, 0, key).group_id
    if value is None:
        return GroupEpoch(group_id, None)
    message = decode_struct(StreamsGroupMetadataValue, 0, value)
    configs = {each.key: each.value for each in message.last_assignment_configs or ()}
    return GroupEpoch(
        group_id, message.epoch, message.metadata_hash, message.validated_topology_epoch, configs
    )


def _decode_member(key: bytes, value: bytes | None) -> Member:
    named = decode_struct(StreamsGroupMemberMetadataKey, 0, key)
    if value is None:
        return Member(named.group_id, named.member_id, None)
    message = decode_struct(StreamsGroupMemberMetadataValue, 0, value)
    endpoint = message.user_endpoint
    metadata = MemberMetadata(
        rack_id=message.rack_id,
        client_id=message.client_id,
        client_host=message.client_host,
        rebalance_timeout_ms=message.rebalance_timeout_ms,
        topology_epoch=message.topology_epoch,
        process_id=message.process_id,
        user_endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        client_tags=tuple((each.key, each.value) for each in message.client_tags),
    )
    return Member(named.group_id, named.member_id, metadata)


def _decode_target_epoch(key: bytes, value: bytes | None) -> TargetEpoch:
    group_id = decode_struct(StreamsGroupTargetAssignmentMetadataKey, 0, key).group_id
    if value is None:
        return TargetEpoch(group_id, None)
    message = decode_struct(StreamsGroupTargetAssignmentMetadataValue, 0, value)
    return TargetEpoch(group_id, message.assignment_epoch, message.assignment_timestamp)


def _decode_target(key: bytes, value: bytes | None) -> TargetAssignment:
    named = decode_struct(StreamsGroupTargetAssignmentMemberKey, 0, key)
    if value is None:
        return TargetAssignment(named.group_id, named.member_id, None)
    message = decode_struct(StreamsGroupTargetAssignmentMemberValue, 0, value)
    target = Target(
        _decode_target_tasks(message.active_tasks), _decode_target_tasks(message.standby_tasks)
    )
    return TargetAssignment(named.group_id, named.member_id, target)


def _decode_target_tasks(tasks: list[TargetTaskIds]) -> Tasks:
    return {each.subtopology_id: frozenset(each.partitions) for each in tasks if each.partitions}


def _decode_current(key: bytes, value: bytes | None) -> Current:
    named = decode_struct(StreamsGroupCurrentMemberAssignmentKey, 0, key)
    if value is None:
        return Current(named.group_id, named.member_id, None)
    message = decode_struct(StreamsGroupCurrentMemberAssignmentValue, 0, value)
    is_known = message.state in MemberState.__members__.values()
    epoch = message.member_epoch
    current = CurrentAssignment(
        epoch,
        message.previous_member_epoch,
        MemberState(message.state) if is_known else MemberState.UNKNOWN,
        Held(
            _decode_held(message.active_tasks, epoch),
            _decode_held(message.standby_tasks, STANDBY_EPOCH),
        ),
        Held(
            _decode_held(message.active_tasks_pending_revocation, epoch),
            _decode_held(message.standby_tasks_pending_revocation, STANDBY_EPOCH),
        ),
    )
    return Current(named.group_id, named.member_id, current)


def _decode_held(tasks: list[CurrentTaskIds], default_epoch: int) -> HeldTasks:
    """Decode tasks; those without epochs get the default."""
    held: dict[str, dict[int, int]] = {}
    for each in tasks:
        partitions = by_partition(each.partitions, each.assignment_epochs, default_epoch, "tasks")
        if partitions:
            held[each.subtopology_id] = partitions
    return held


def _decode_topology(key: bytes, value: bytes | None) -> GroupTopology:
    group_id = decode_struct(StreamsGroupTopologyKey, 0, key).group_id
    if value is None:
        return GroupTopology(group_id, None)
    message = decode_struct(StreamsGroupTopologyValue, 0, value)
    topology = Topology(epoch=message.epoch, subtopologies=message.subtopologies)
    return GroupTopology(group_id, topology_of(topology))


DECODERS: dict[int, Callable[[bytes, bytes | None], StreamsGroupRecord]] = {
    17: _decode_group_epoch,
    19: _decode_member,
    20: _decode_target_epoch,
    21: _decode_target,
    22: _decode_current,
    23: _decode_topology,
}
