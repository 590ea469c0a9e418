"""The records of consumer groups in `__consumer_offsets`, in Kafka's own schemas.

The types of keys: 3 the group's epoch, 5 a member's subscription, 6 the epoch of the targets, 7 a
member's target, 8 a member's current assignment, 16 the topics of a regular expression. A tombstone
removes what its key names; the tombstone of type 5 is the last one of a member. Records of type 4
(the partitions of a group's topics), which Kafka wrote before 4.1, are skipped: the hash in type 3
replaces them.

Each class below encodes itself (`encoded`), and `decode_record` decodes it. `consumer_group.py` has
the effect of each record on a group.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

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
from broker.coordinator.group_state.group_records import by_partition, decode_with, encode
from broker.coordinator.output import CoordinatorRecord
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
from common.kafka.protocol.structs import decode_struct


@dataclass(frozen=True, slots=True)
class GroupEpoch:
    """The epoch of a group, and the hash of its topics; epoch None removes the group."""

    group_id: str
    epoch: int | None
    metadata_hash: int = 0

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        value = None
        if self.epoch is not None:
            value = ConsumerGroupMetadataValue(epoch=self.epoch, metadata_hash=self.metadata_hash)
        return encode(ConsumerGroupMetadataKey(group_id=self.group_id), value)


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """The subscription of a member; None removes the member."""

    group_id: str
    member_id: str
    subscription: MemberSubscription | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        key = ConsumerGroupMemberMetadataKey(group_id=self.group_id, member_id=self.member_id)
        return encode(key, None if self.subscription is None else _metadata(self.subscription))


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
            value = ConsumerGroupTargetAssignmentMetadataValue(
                assignment_epoch=self.epoch, assignment_timestamp=self.timestamp_ms
            )
        return encode(ConsumerGroupTargetAssignmentMetadataKey(group_id=self.group_id), value)


@dataclass(frozen=True, slots=True)
class Target:
    """The target assignment of a member; None removes it."""

    group_id: str
    member_id: str
    assignment: Assignment | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        value = None
        if self.assignment is not None:
            value = ConsumerGroupTargetAssignmentMemberValue(
                topic_partitions=[
                    TargetTopicPartition(topic_id=topic_id, partitions=sorted(partitions))
                    for topic_id, partitions in sorted(self.assignment.items())
                ]
            )
        key = ConsumerGroupTargetAssignmentMemberKey(
            group_id=self.group_id, member_id=self.member_id
        )
        return encode(key, value)


@dataclass(frozen=True, slots=True)
class Current:
    """The current assignment of a member; None removes it."""

    group_id: str
    member_id: str
    current: CurrentAssignment | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        value = None
        if self.current is not None:
            value = ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=self.current.member_epoch,
                previous_member_epoch=self.current.previous_member_epoch,
                state=self.current.state,
                assigned_partitions=_owned(self.current.assigned),
                partitions_pending_revocation=_owned(self.current.pending_revocation),
            )
        key = ConsumerGroupCurrentMemberAssignmentKey(
            group_id=self.group_id, member_id=self.member_id
        )
        return encode(key, value)


@dataclass(frozen=True, slots=True)
class Regex:
    """The topics that match a regular expression; None removes the expression."""

    group_id: str
    pattern: str
    resolved: ResolvedRegex | None

    def encoded(self) -> CoordinatorRecord:
        """Encode the record."""
        value = None
        if self.resolved is not None:
            value = ConsumerGroupRegularExpressionValue(
                topics=sorted(self.resolved.topics),
                version=self.resolved.version,
                timestamp=self.resolved.timestamp_ms,
            )
        key = ConsumerGroupRegularExpressionKey(
            group_id=self.group_id, regular_expression=self.pattern
        )
        return encode(key, value)


ConsumerGroupRecord = GroupEpoch | MemberMetadata | TargetEpoch | Target | Current | Regex


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


def decode_record(key: bytes, value: bytes | None) -> ConsumerGroupRecord | None:
    """Decode a record; return None for other types; raise DecodeError for a damaged record."""
    return decode_with(DECODERS, key, value)


def _decode_group_epoch(key: bytes, value: bytes | None) -> GroupEpoch:
    group_id = decode_struct(ConsumerGroupMetadataKey, 0, key).group_id
    if value is None:
        return GroupEpoch(group_id, None)
    message = decode_struct(ConsumerGroupMetadataValue, 0, value)
    return GroupEpoch(group_id, message.epoch, message.metadata_hash)


def _decode_member(key: bytes, value: bytes | None) -> MemberMetadata:
    named = decode_struct(ConsumerGroupMemberMetadataKey, 0, key)
    if value is None:
        return MemberMetadata(named.group_id, named.member_id, None)
    message = decode_struct(ConsumerGroupMemberMetadataValue, 0, value)
    classic = message.classic_member_metadata
    subscription = MemberSubscription(
        instance_id=message.instance_id,
        rack_id=message.rack_id,
        client_id=message.client_id,
        client_host=message.client_host,
        topic_names=frozenset(message.subscribed_topic_names),
        topic_regex=message.subscribed_topic_regex or "",
        rebalance_timeout_ms=message.rebalance_timeout_ms,
        server_assignor=message.server_assignor,
        classic=None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms,
            tuple(MemberProtocol(each.name, each.metadata) for each in classic.supported_protocols),
        ),
    )
    return MemberMetadata(named.group_id, named.member_id, subscription)


def _decode_target_epoch(key: bytes, value: bytes | None) -> TargetEpoch:
    group_id = decode_struct(ConsumerGroupTargetAssignmentMetadataKey, 0, key).group_id
    if value is None:
        return TargetEpoch(group_id, None)
    message = decode_struct(ConsumerGroupTargetAssignmentMetadataValue, 0, value)
    return TargetEpoch(group_id, message.assignment_epoch, message.assignment_timestamp)


def _decode_target(key: bytes, value: bytes | None) -> Target:
    named = decode_struct(ConsumerGroupTargetAssignmentMemberKey, 0, key)
    if value is None:
        return Target(named.group_id, named.member_id, None)
    message = decode_struct(ConsumerGroupTargetAssignmentMemberValue, 0, value)
    assignment = {
        each.topic_id: frozenset(each.partitions)
        for each in message.topic_partitions
        if each.partitions
    }
    return Target(named.group_id, named.member_id, assignment)


def _decode_current(key: bytes, value: bytes | None) -> Current:
    named = decode_struct(ConsumerGroupCurrentMemberAssignmentKey, 0, key)
    if value is None:
        return Current(named.group_id, named.member_id, None)
    message = decode_struct(ConsumerGroupCurrentMemberAssignmentValue, 0, value)
    is_known = message.state in MemberState.__members__.values()
    current = CurrentAssignment(
        message.member_epoch,
        message.previous_member_epoch,
        MemberState(message.state) if is_known else MemberState.UNKNOWN,
        _decode_owned(message.assigned_partitions, message.member_epoch),
        _decode_owned(message.partitions_pending_revocation, message.member_epoch),
    )
    return Current(named.group_id, named.member_id, current)


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


def _decode_regex(key: bytes, value: bytes | None) -> Regex:
    named = decode_struct(ConsumerGroupRegularExpressionKey, 0, key)
    if value is None:
        return Regex(named.group_id, named.regular_expression, None)
    message = decode_struct(ConsumerGroupRegularExpressionValue, 0, value)
    resolved = ResolvedRegex(frozenset(message.topics), message.version, message.timestamp)
    return Regex(named.group_id, named.regular_expression, resolved)


DECODERS: dict[int, Callable[[bytes, bytes | None], ConsumerGroupRecord]] = {
    3: _decode_group_epoch,
    5: _decode_member,
    6: _decode_target_epoch,
    7: _decode_target,
    8: _decode_current,
    16: _decode_regex,
}
