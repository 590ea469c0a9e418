"""The records of consumer groups in `__consumer_offsets`, in Kafka's own schemas.

The types of keys: 3 the group's epoch, 5 a member's subscription, 6 the epoch of the targets, 7 a
member's target, 8 a member's current assignment, 16 the topics of a regular expression. A tombstone
removes what its key names; the tombstone of type 5 is the last one of a member. Records of type 4
(the partitions of a group's topics), which Kafka wrote before 4.1, are skipped: the hash in type 3
replaces them.

Each class below encodes itself (`encoded`), and `decode_record` decodes it. `consumer_group.py` has
the effect of each record on a group.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from broker.coordinator.classic_group.member import MemberProtocol
from broker.coordinator.consumer_group.member import (
    Assignment,
    ClassicMetadata,
    CurrentAssignment,
    MemberState,
    MemberSubscription,
    Owned,
)
from broker.coordinator.consumer_group.regex import ResolvedRegex
from broker.coordinator.group_state.group_records import (
    GroupRecord,
    MemberRecord,
    TargetEpochRecord,
    by_partition,
    by_type,
    decode_with,
)
from common.kafka.protocol.records.consumer_group import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
    TargetTopicPartition,
)


@dataclass(frozen=True, slots=True)
class GroupEpoch(GroupRecord):
    """The epoch of a group, and the hash of its topics; a tombstone removes the group."""

    KEY: ClassVar = ConsumerGroupMetadataKey
    VALUE: ClassVar = ConsumerGroupMetadataValue
    group_id: str
    content: int | None
    metadata_hash: int = 0

    def value(self) -> ConsumerGroupMetadataValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return ConsumerGroupMetadataValue(epoch=self.content, metadata_hash=self.metadata_hash)

    @staticmethod
    def content_of(value: ConsumerGroupMetadataValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        return (value.epoch, value.metadata_hash)


@dataclass(frozen=True, slots=True)
class MemberMetadata(MemberRecord):
    """The subscription of a member; a tombstone removes the member."""

    KEY: ClassVar = ConsumerGroupMemberMetadataKey
    VALUE: ClassVar = ConsumerGroupMemberMetadataValue
    group_id: str
    member_id: str
    content: MemberSubscription | None

    def value(self) -> ConsumerGroupMemberMetadataValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return _metadata(self.content)

    @staticmethod
    def content_of(value: ConsumerGroupMemberMetadataValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        return (_subscription(value),)


@dataclass(frozen=True, slots=True)
class TargetEpoch(TargetEpochRecord):
    """The group epoch that the targets were computed for; a tombstone removes it."""

    KEY: ClassVar = ConsumerGroupTargetAssignmentMetadataKey
    VALUE: ClassVar = ConsumerGroupTargetAssignmentMetadataValue
    group_id: str
    content: int | None
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class Target(MemberRecord):
    """The target assignment of a member; a tombstone removes it."""

    KEY: ClassVar = ConsumerGroupTargetAssignmentMemberKey
    VALUE: ClassVar = ConsumerGroupTargetAssignmentMemberValue
    group_id: str
    member_id: str
    content: Assignment | None

    def value(self) -> ConsumerGroupTargetAssignmentMemberValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TargetTopicPartition(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in sorted(self.content.items())
            ]
        )

    @staticmethod
    def content_of(value: ConsumerGroupTargetAssignmentMemberValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        assignment = {
            each.topic_id: frozenset(each.partitions)
            for each in value.topic_partitions
            if each.partitions
        }
        return (assignment,)


@dataclass(frozen=True, slots=True)
class Current(MemberRecord):
    """The current assignment of a member; a tombstone removes it."""

    KEY: ClassVar = ConsumerGroupCurrentMemberAssignmentKey
    VALUE: ClassVar = ConsumerGroupCurrentMemberAssignmentValue
    group_id: str
    member_id: str
    content: CurrentAssignment | None

    def value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.content.member_epoch,
            previous_member_epoch=self.content.previous_member_epoch,
            state=self.content.state,
            assigned_partitions=_owned(self.content.assigned),
            partitions_pending_revocation=_owned(self.content.pending_revocation),
        )

    @staticmethod
    def content_of(value: ConsumerGroupCurrentMemberAssignmentValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        is_known = value.state in MemberState.__members__.values()
        current = CurrentAssignment(
            value.member_epoch,
            value.previous_member_epoch,
            MemberState(value.state) if is_known else MemberState.UNKNOWN,
            _decode_owned(value.assigned_partitions, value.member_epoch),
            _decode_owned(value.partitions_pending_revocation, value.member_epoch),
        )
        return (current,)


@dataclass(frozen=True, slots=True)
class Regex(GroupRecord):
    """The topics that match a regular expression; a tombstone removes the expression."""

    KEY: ClassVar = ConsumerGroupRegularExpressionKey
    VALUE: ClassVar = ConsumerGroupRegularExpressionValue
    group_id: str
    pattern: str
    content: ResolvedRegex | None

    def value(self) -> ConsumerGroupRegularExpressionValue:
        """Return the VALUE of a record that is no tombstone."""
        assert self.content is not None, self
        return ConsumerGroupRegularExpressionValue(
            topics=sorted(self.content.topics),
            version=self.content.version,
            timestamp=self.content.timestamp_ms,
        )

    @staticmethod
    def content_of(value: ConsumerGroupRegularExpressionValue) -> tuple[Any, ...]:
        """Return the content in a VALUE."""
        return (ResolvedRegex(frozenset(value.topics), value.version, value.timestamp),)

    def key(self) -> ConsumerGroupRegularExpressionKey:
        """Return the KEY of this record."""
        return ConsumerGroupRegularExpressionKey(
            group_id=self.group_id, regular_expression=self.pattern
        )

    @staticmethod
    def named_by(key: ConsumerGroupRegularExpressionKey) -> tuple[str, ...]:
        """Return the fields that a KEY gives."""
        return (key.group_id, key.regular_expression)


ConsumerGroupRecord = GroupEpoch | MemberMetadata | TargetEpoch | Target | Current | Regex
_TYPES: Mapping[int, type[ConsumerGroupRecord]] = by_type(
    (GroupEpoch, MemberMetadata, TargetEpoch, Target, Current, Regex)
)


def decode_record(key: bytes, value: bytes | None) -> ConsumerGroupRecord | None:
    """Decode a record; return None for other types; raise DecodeError for a damaged record."""
    return decode_with(_TYPES, key, value)


def _metadata(subscription: MemberSubscription) -> ConsumerGroupMemberMetadataValue:
    classic = subscription.classic
    return ConsumerGroupMemberMetadataValue(
        instance_id=subscription.instance_id,
        rack_id=subscription.rack_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        subscribed_topic_names=sorted(subscription.topic_names),
        subscribed_topic_regex=subscription.topic_regex or None,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        server_assignor=subscription.server_assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=each.name, metadata=each.metadata)
                for each in classic.protocols
            ],
        ),
    )


def _owned(owned: Owned) -> list[CurrentTopicPartitions]:
    return [
        CurrentTopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[each] for each in sorted(partitions)],
        )
        for topic_id, partitions in sorted(owned.items())
    ]


def _subscription(value: ConsumerGroupMemberMetadataValue) -> MemberSubscription:
    classic = value.classic_member_metadata
    return MemberSubscription(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_regex=value.subscribed_topic_regex or "",
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms,
            tuple(MemberProtocol(each.name, each.metadata) for each in classic.supported_protocols),
        ),
    )


def _decode_owned(topics: Iterable[CurrentTopicPartitions], member_epoch: int) -> Owned:
    """Decode partitions; those without epochs get the member's."""
    owned: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        partitions = by_partition(
            topic.partitions, topic.assignment_epochs, member_epoch, "partitions"
        )
        if partitions:
            owned[topic.topic_id] = partitions
    return owned
