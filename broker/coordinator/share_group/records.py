"""The records of share groups in `__consumer_offsets`, in Kafka's own schemas.

The types of keys: 10 a member's subscription, 11 the group's epoch, 12 the epoch of the targets, 13
a member's target, 14 a member's current assignment, 15 the partitions with state. A tombstone
removes what its key names; the tombstone of type 10 is the last one of a member.

Each class below encodes itself (`encoded`), and `decode_record` decodes it. `replay.py` has the
effect of each record on a group.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from broker.coordinator.consumer_group.member import Assignment
from broker.coordinator.group_state.group_records import decode_with, encode
from broker.coordinator.output import CoordinatorRecord
from broker.coordinator.share_group.member import ShareAssignment, ShareSubscription
from broker.coordinator.share_group.state_partitions import (
    Named,
    NamedPartitions,
    StatePartitions,
)
from common.kafka.protocol.records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartitions,
    TopicPartitionsInfo,
)
from common.kafka.protocol.structs import decode_struct

STABLE = 0
"""The only state of a member of a share group."""


@dataclass(frozen=True, slots=True)
class ShareMemberMetadata:
    """The subscription of a member; None removes the member."""

    group_id: str
    member_id: str
    content: ShareSubscription | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        key = ShareGroupMemberMetadataKey(group_id=self.group_id, member_id=self.member_id)
        if self.content is None:
            return encode(key, None)
        return encode(
            key,
            ShareGroupMemberMetadataValue(
                rack_id=self.content.rack_id,
                client_id=self.content.client_id,
                client_host=self.content.client_host,
                subscribed_topic_names=sorted(self.content.topic_names),
            ),
        )


@dataclass(frozen=True, slots=True)
class ShareGroupEpoch:
    """The epoch of a group, and the hash of its topics; None removes the group."""

    group_id: str
    content: int | None
    metadata_hash: int = 0

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        key = ShareGroupMetadataKey(group_id=self.group_id)
        if self.content is None:
            return encode(key, None)
        value = ShareGroupMetadataValue(epoch=self.content, metadata_hash=self.metadata_hash)
        return encode(key, value)


@dataclass(frozen=True, slots=True)
class ShareTargetEpoch:
    """The group epoch that the targets were computed for; None removes it."""

    group_id: str
    content: int | None
    timestamp_ms: int = 0

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        key = ShareGroupTargetAssignmentMetadataKey(group_id=self.group_id)
        if self.content is None:
            return encode(key, None)
        value = ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=self.content, assignment_timestamp=self.timestamp_ms
        )
        return encode(key, value)


@dataclass(frozen=True, slots=True)
class ShareTarget:
    """The target assignment of a member; None removes it."""

    group_id: str
    member_id: str
    content: Assignment | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        key = ShareGroupTargetAssignmentMemberKey(group_id=self.group_id, member_id=self.member_id)
        if self.content is None:
            return encode(key, None)
        value = ShareGroupTargetAssignmentMemberValue(topic_partitions=_listed(self.content))
        return encode(key, value)


@dataclass(frozen=True, slots=True)
class ShareCurrent:
    """The current assignment of a member; None removes it."""

    group_id: str
    member_id: str
    content: ShareAssignment | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        key = ShareGroupCurrentMemberAssignmentKey(group_id=self.group_id, member_id=self.member_id)
        if self.content is None:
            return encode(key, None)
        return encode(
            key,
            ShareGroupCurrentMemberAssignmentValue(
                member_epoch=self.content.member_epoch,
                previous_member_epoch=self.content.previous_member_epoch,
                state=STABLE,
                assigned_partitions=_listed(self.content.partitions),
            ),
        )


@dataclass(frozen=True, slots=True)
class ShareStatePartitions:
    """The partitions with state; None removes them all."""

    group_id: str
    content: StatePartitions | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        key = ShareGroupStatePartitionMetadataKey(group_id=self.group_id)
        if self.content is None:
            return encode(key, None)
        return encode(
            key,
            ShareGroupStatePartitionMetadataValue(
                initializing_topics=_named(self.content.initializing),
                initialized_topics=_named(self.content.initialized),
                deleting_topics=[
                    TopicInfo(topic_id=topic_id, topic_name=name)
                    for topic_id, name in sorted(self.content.deleting.items())
                ],
            ),
        )


ShareGroupRecord = (
    ShareMemberMetadata
    | ShareGroupEpoch
    | ShareTargetEpoch
    | ShareTarget
    | ShareCurrent
    | ShareStatePartitions
)


def _listed(assignment: Assignment) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in sorted(assignment.items())
    ]


def _named(named: Named) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=sorted(partitions))
        for topic_id, (name, partitions) in sorted(named.items())
    ]


def decode_record(key: bytes, value: bytes | None) -> ShareGroupRecord | None:
    """Decode a record; return None for other types; raise DecodeError for a damaged record."""
    return decode_with(DECODERS, key, value)


def _decode_member(key: bytes, value: bytes | None) -> ShareMemberMetadata:
    named = decode_struct(ShareGroupMemberMetadataKey, 0, key)
    if value is None:
        return ShareMemberMetadata(named.group_id, named.member_id, None)
    message = decode_struct(ShareGroupMemberMetadataValue, 0, value)
    subscription = ShareSubscription(
        message.rack_id,
        message.client_id,
        message.client_host,
        frozenset(message.subscribed_topic_names),
    )
    return ShareMemberMetadata(named.group_id, named.member_id, subscription)


def _decode_epoch(key: bytes, value: bytes | None) -> ShareGroupEpoch:
    group_id = decode_struct(ShareGroupMetadataKey, 0, key).group_id
    if value is None:
        return ShareGroupEpoch(group_id, None)
    message = decode_struct(ShareGroupMetadataValue, 0, value)
    return ShareGroupEpoch(group_id, message.epoch, message.metadata_hash)


def _decode_target_epoch(key: bytes, value: bytes | None) -> ShareTargetEpoch:
    group_id = decode_struct(ShareGroupTargetAssignmentMetadataKey, 0, key).group_id
    if value is None:
        return ShareTargetEpoch(group_id, None)
    message = decode_struct(ShareGroupTargetAssignmentMetadataValue, 0, value)
    return ShareTargetEpoch(group_id, message.assignment_epoch, message.assignment_timestamp)


def _decode_target(key: bytes, value: bytes | None) -> ShareTarget:
    named = decode_struct(ShareGroupTargetAssignmentMemberKey, 0, key)
    target = None
    if value is not None:
        message = decode_struct(ShareGroupTargetAssignmentMemberValue, 0, value)
        target = _assignment(message.topic_partitions)
    return ShareTarget(named.group_id, named.member_id, target)


def _decode_current(key: bytes, value: bytes | None) -> ShareCurrent:
    named = decode_struct(ShareGroupCurrentMemberAssignmentKey, 0, key)
    current = None
    if value is not None:
        message = decode_struct(ShareGroupCurrentMemberAssignmentValue, 0, value)
        current = ShareAssignment(
            message.member_epoch,
            message.previous_member_epoch,
            _assignment(message.assigned_partitions),
        )
    return ShareCurrent(named.group_id, named.member_id, current)


def _decode_states(key: bytes, value: bytes | None) -> ShareStatePartitions:
    group_id = decode_struct(ShareGroupStatePartitionMetadataKey, 0, key).group_id
    if value is None:
        return ShareStatePartitions(group_id, None)
    message = decode_struct(ShareGroupStatePartitionMetadataValue, 0, value)
    states = StatePartitions(
        _decode_named(message.initializing_topics),
        _decode_named(message.initialized_topics),
        {each.topic_id: each.topic_name for each in message.deleting_topics},
    )
    return ShareStatePartitions(group_id, states)


def _assignment(topics: Iterable[TopicPartitions]) -> Assignment:
    return {each.topic_id: frozenset(each.partitions) for each in topics if each.partitions}


def _decode_named(topics: Iterable[TopicPartitionsInfo]) -> dict[bytes, NamedPartitions]:
    return {
        each.topic_id: NamedPartitions(each.topic_name, frozenset(each.partitions))
        for each in topics
        if each.partitions
    }


DECODERS: dict[int, Callable[[bytes, bytes | None], ShareGroupRecord]] = {
    10: _decode_member,
    11: _decode_epoch,
    12: _decode_target_epoch,
    13: _decode_target,
    14: _decode_current,
    15: _decode_states,
}
