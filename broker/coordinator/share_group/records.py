"""The records of share groups in `__consumer_offsets`, in Kafka's own schemas.

The types of keys: 10 a member's subscription, 11 the group's epoch, 12 the epoch of the targets, 13
a member's target, 14 a member's current assignment, 15 the partitions with state. A tombstone
removes what its key names; the tombstone of type 10 is the last one of a member.

Each class below encodes itself (`encoded`), and `decode_record` decodes it. `replay.py` has the
effect of each record on a group.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from broker.coordinator.consumer_group.member import Assignment
from broker.coordinator.group_state.group_records import (
    GroupRecord,
    MemberRecord,
    TargetEpochRecord,
    by_type,
    decode_with,
)
from broker.coordinator.share_group.share_group import ShareAssignment, ShareSubscription
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

STABLE = 0
"""The only state of a member of a share group."""


@dataclass(frozen=True, slots=True)
class ShareMemberMetadata(MemberRecord):
    """The subscription of a member; a tombstone removes the member."""

    KEY: ClassVar = ShareGroupMemberMetadataKey
    VALUE: ClassVar = ShareGroupMemberMetadataValue
    group_id: str
    member_id: str
    content: ShareSubscription | None

    def value(self) -> ShareGroupMemberMetadataValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return ShareGroupMemberMetadataValue(
            rack_id=self.content.rack_id,
            client_id=self.content.client_id,
            client_host=self.content.client_host,
            subscribed_topic_names=sorted(self.content.topic_names),
        )

    @staticmethod
    def content_of(value: ShareGroupMemberMetadataValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        names = frozenset(value.subscribed_topic_names)
        return (ShareSubscription(value.rack_id, value.client_id, value.client_host, names),)


@dataclass(frozen=True, slots=True)
class ShareGroupEpoch(GroupRecord):
    """The epoch of a group, and the hash of its topics; a tombstone removes the group."""

    KEY: ClassVar = ShareGroupMetadataKey
    VALUE: ClassVar = ShareGroupMetadataValue
    group_id: str
    content: int | None
    metadata_hash: int = 0

    def value(self) -> ShareGroupMetadataValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return ShareGroupMetadataValue(epoch=self.content, metadata_hash=self.metadata_hash)

    @staticmethod
    def content_of(value: ShareGroupMetadataValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        return (value.epoch, value.metadata_hash)


@dataclass(frozen=True, slots=True)
class ShareTargetEpoch(TargetEpochRecord):
    """The group epoch that the targets were computed for; a tombstone removes it."""

    KEY: ClassVar = ShareGroupTargetAssignmentMetadataKey
    VALUE: ClassVar = ShareGroupTargetAssignmentMetadataValue
    group_id: str
    content: int | None
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class ShareTarget(MemberRecord):
    """The target assignment of a member; a tombstone removes it."""

    KEY: ClassVar = ShareGroupTargetAssignmentMemberKey
    VALUE: ClassVar = ShareGroupTargetAssignmentMemberValue
    group_id: str
    member_id: str
    content: Assignment | None

    def value(self) -> ShareGroupTargetAssignmentMemberValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return ShareGroupTargetAssignmentMemberValue(topic_partitions=_listed(self.content))

    @staticmethod
    def content_of(value: ShareGroupTargetAssignmentMemberValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        return (_assignment(value.topic_partitions),)


@dataclass(frozen=True, slots=True)
class ShareCurrent(MemberRecord):
    """The current assignment of a member; a tombstone removes it."""

    KEY: ClassVar = ShareGroupCurrentMemberAssignmentKey
    VALUE: ClassVar = ShareGroupCurrentMemberAssignmentValue
    group_id: str
    member_id: str
    content: ShareAssignment | None

    def value(self) -> ShareGroupCurrentMemberAssignmentValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.content.member_epoch,
            previous_member_epoch=self.content.previous_member_epoch,
            state=STABLE,
            assigned_partitions=_listed(self.content.partitions),
        )

    @staticmethod
    def content_of(value: ShareGroupCurrentMemberAssignmentValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        partitions = _assignment(value.assigned_partitions)
        return (ShareAssignment(value.member_epoch, value.previous_member_epoch, partitions),)


@dataclass(frozen=True, slots=True)
class ShareStatePartitions(GroupRecord):
    """The partitions with state; a tombstone removes them all."""

    KEY: ClassVar = ShareGroupStatePartitionMetadataKey
    VALUE: ClassVar = ShareGroupStatePartitionMetadataValue
    group_id: str
    content: StatePartitions | None

    def value(self) -> ShareGroupStatePartitionMetadataValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return ShareGroupStatePartitionMetadataValue(
            initializing_topics=_named(self.content.initializing),
            initialized_topics=_named(self.content.initialized),
            deleting_topics=[
                TopicInfo(topic_id=topic_id, topic_name=name)
                for topic_id, name in sorted(self.content.deleting.items())
            ],
        )

    @staticmethod
    def content_of(value: ShareGroupStatePartitionMetadataValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        states = StatePartitions(
            _decode_named(value.initializing_topics),
            _decode_named(value.initialized_topics),
            {each.topic_id: each.topic_name for each in value.deleting_topics},
        )
        return (states,)


ShareGroupRecord = (
    ShareMemberMetadata
    | ShareGroupEpoch
    | ShareTargetEpoch
    | ShareTarget
    | ShareCurrent
    | ShareStatePartitions
)
_TYPES: Mapping[int, type[ShareGroupRecord]] = by_type(
    (
        ShareMemberMetadata,
        ShareGroupEpoch,
        ShareTargetEpoch,
        ShareTarget,
        ShareCurrent,
        ShareStatePartitions,
    )
)


def decode_record(key: bytes, value: bytes | None) -> ShareGroupRecord | None:
    """Decode a record; return None for other types; raise DecodeError for a damaged record."""
    return decode_with(_TYPES, key, value)


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


def _assignment(topics: Iterable[TopicPartitions]) -> Assignment:
    return {each.topic_id: frozenset(each.partitions) for each in topics if each.partitions}


def _decode_named(topics: Iterable[TopicPartitionsInfo]) -> dict[bytes, NamedPartitions]:
    return {
        each.topic_id: NamedPartitions(each.topic_name, frozenset(each.partitions))
        for each in topics
        if each.partitions
    }
