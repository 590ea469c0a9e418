"""The records of classic groups and of offsets in `__consumer_offsets`, in Kafka's own schemas.

The types of keys (the int16 at the start of a key): 0 and 1 a committed offset, 2 a classic group;
the types from 3 belong to other group protocols and are skipped. The versions of values that are
written are those of Kafka 4.3: groups 3; offsets 4, or 1 if the commit has its own expiry time,
which only version 1 can hold. A tombstone (no value) removes the offset or the group.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from struct import unpack_from

from broker.coordinator.classic_group.classic_group import ClassicGroup, GroupState
from broker.coordinator.classic_group.member import Member, MemberProtocol
from broker.coordinator.group_state.offset_store import NO_TIMESTAMP, NO_TOPIC_ID, OffsetAndMetadata
from broker.coordinator.output import CoordinatorRecord
from broker.model import TopicPartition
from common.kafka.protocol.records.group import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from common.kafka.protocol.structs import decode_struct, encode_struct
from common.kafka.protocol.wire import DecodeError

LEGACY_OFFSET_KEY, OFFSET_KEY, GROUP_KEY = 0, 1, 2
_OFFSET_KEYS = tuple(each.to_bytes(2, "big") for each in (LEGACY_OFFSET_KEY, OFFSET_KEY))
GROUP_VALUE_VERSION = 3
OFFSET_VALUE_VERSION = 4
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
MAX_VALUE_VERSION = 4
"""The newest version of a value that is read, of offsets and of groups."""


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """A committed offset, or its removal."""

    group_id: str
    partition: TopicPartition
    committed: OffsetAndMetadata | None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A classic group, or its removal."""

    group_id: str
    group: ClassicGroup | None


def _typed(record_type: int, body: bytes) -> bytes:
    return record_type.to_bytes(2, "big") + body


def offset_record(
    group_id: str, partition: TopicPartition, committed: OffsetAndMetadata | None
) -> CoordinatorRecord:
    """Encode a committed offset; None encodes the tombstone."""
    key = OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)
    value = None
    if committed is not None:
        has_expiry = committed.expire_timestamp_ms != NO_TIMESTAMP
        version = OFFSET_VALUE_VERSION_WITH_EXPIRY if has_expiry else OFFSET_VALUE_VERSION
        message = OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_timestamp_ms,
            expire_timestamp=committed.expire_timestamp_ms,
            topic_id=committed.topic_id,
        )
        value = _typed(version, encode_struct(message, version))
    return CoordinatorRecord(_typed(OFFSET_KEY, encode_struct(key, 0)), value)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """Encode the removal of a group."""
    return CoordinatorRecord(_group_key(group_id), None)


def group_record(group: ClassicGroup, members: Iterable[Member]) -> CoordinatorRecord:
    """Encode a group with these members and their assignments."""
    message = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.current_state_timestamp_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name or ""),
                assignment=member.assignment,
            )
            for member in members
        ],
    )
    value = _typed(GROUP_VALUE_VERSION, encode_struct(message, GROUP_VALUE_VERSION))
    return CoordinatorRecord(_group_key(group.group_id), value)


def _group_key(group_id: str) -> bytes:
    return _typed(GROUP_KEY, encode_struct(GroupMetadataKey(group=group_id), 0))


def is_offset_key(key: bytes) -> bool:
    """Return True for the key of a committed offset."""
    return key.startswith(_OFFSET_KEYS)


def decode_record(key: bytes, value: bytes | None) -> OffsetRecord | GroupRecord | None:
    """Decode a record; return None for other types; raise DecodeError for a damaged record."""
    key_type = _type_of(key)
    if key_type in (LEGACY_OFFSET_KEY, OFFSET_KEY):
        return _decode_offset(key[2:], value)
    if key_type == GROUP_KEY:
        group_id = decode_struct(GroupMetadataKey, 0, key[2:]).group
        return GroupRecord(group_id, None if value is None else _decode_group(group_id, value))
    return None


def _type_of(data: bytes) -> int:
    if len(data) < 2:
        raise DecodeError(f"record of {len(data)} bytes has no type")
    record_type: int = unpack_from(">h", data)[0]
    return record_type


def _version_of(value: bytes) -> int:
    version = _type_of(value)
    if not 0 <= version <= MAX_VALUE_VERSION:
        raise DecodeError(f"value version {version} is unknown")
    return version


def _decode_offset(key_body: bytes, value: bytes | None) -> OffsetRecord:
    key = decode_struct(OffsetCommitKey, 0, key_body)
    committed = None
    if value is not None:
        message = decode_struct(OffsetCommitValue, _version_of(value), value[2:])
        committed = OffsetAndMetadata(
            offset=message.offset,
            leader_epoch=message.leader_epoch,
            metadata=message.metadata,
            commit_timestamp_ms=message.commit_timestamp,
            expire_timestamp_ms=message.expire_timestamp,
            topic_id=message.topic_id or NO_TOPIC_ID,
        )
    return OffsetRecord(key.group, TopicPartition(key.topic, key.partition), committed)


def _decode_group(group_id: str, value: bytes) -> ClassicGroup:
    """Build a group from its record. A group with members was STABLE when it was written."""
    message = decode_struct(GroupMetadataValue, _version_of(value), value[2:])
    _validate_group(message)
    group = ClassicGroup(
        group_id,
        state=GroupState.STABLE if message.members else GroupState.EMPTY,
        generation_id=message.generation,
        protocol_type=message.protocol_type or None,
        protocol_name=message.protocol,
        current_state_timestamp_ms=message.current_state_timestamp,
        is_persisted=True,
    )
    for each in message.members:
        group.add(_member_of(each, message.protocol or ""), group.protocol_type)
    if message.leader in group.members:
        group.leader_id = message.leader
    group.subscribed_topics = group.compute_subscribed_topics()
    return group


def _validate_group(message: GroupMetadataValue) -> None:
    """Raise DecodeError for a group that can be decoded but breaks an invariant."""
    member_ids = {member.member_id for member in message.members}
    instance_ids = [member.group_instance_id for member in message.members]
    static_ids = [instance_id for instance_id in instance_ids if instance_id is not None]
    if len(member_ids) < len(message.members) or len(set(static_ids)) < len(static_ids):
        raise DecodeError("a group has the same member twice")
    if (message.protocol is None) != (not message.members):
        raise DecodeError("a group has members without a protocol, or a protocol without members")


def _member_of(message: MemberMetadata, protocol_name: str) -> Member:
    # Version 0 has no rebalance timeout; it then equals the session timeout.
    has_rebalance_timeout = message.rebalance_timeout >= 0
    return Member(
        message.member_id,
        message.group_instance_id,
        message.client_id,
        message.client_host,
        message.rebalance_timeout if has_rebalance_timeout else message.session_timeout,
        message.session_timeout,
        (MemberProtocol(protocol_name, message.subscription),),
        message.assignment,
    )
