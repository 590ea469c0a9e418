"""Records of Kafka's internal topics as text: the JSON that Kafka's tools print for them."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from struct import Struct as StructLayout
from typing import Any, NamedTuple, TypeAlias

from broker.cli.java_text import java_text
from broker.log.checkpoints import encode_uuid
from broker.records.control import ControlType, control_type, end_marker
from broker.records.errors import CorruptBatch
from broker.records.record import Record
from common.kafka.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from common.kafka.protocol.layout import layout_of
from common.kafka.protocol.message import Field, Message, Struct, default_value
from common.kafka.protocol.records.consumer_group import (
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
)
from common.kafka.protocol.records.group import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from common.kafka.protocol.records.metadata import METADATA_RECORDS
from common.kafka.protocol.records.quorum import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
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
)
from common.kafka.protocol.records.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from common.kafka.protocol.records.streams_group import (
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
)
from common.kafka.protocol.records.transaction import TransactionLogKey, TransactionLogValue
from common.kafka.protocol.structs import decode_struct
from common.kafka.protocol.wire import DecodeError, decode_uvarint

DELETE = "<DELETE>"
_VERSION = StructLayout(">h")


class RecordText(NamedTuple):
    """The text of a record's key and value; None if nothing is printed."""

    key: str | None
    payload: str | None


RecordDecoder: TypeAlias = Callable[[Record], RecordText]


def plain_text(record: Record) -> RecordText:
    """Return key and value as UTF-8."""
    return RecordText(_text(record.key), _text(record.value))


def _text(data: bytes | None) -> str | None:
    return None if data is None else java_text(data)


def _camel_case(name: str) -> str:
    return re.sub("_(.)", lambda found: found[1].upper(), name)


def to_json(struct: Struct, version: int) -> dict[str, Any]:
    """Return the fields of a version; a tagged field only if it is not the default."""
    layout = layout_of(type(struct), version)
    absent = {field.name for field in layout.absent}
    tagged = {field.name for field in layout.tagged}
    return {
        _camel_case(name): _json_value(field, getattr(struct, name), version)
        for name, field in struct.__fields__.items()
        if name not in absent
        and not (name in tagged and getattr(struct, name) == default_value(field))
    }


def _json_value(field: Field, value: Any, version: int) -> Any:
    if isinstance(value, list):
        return [_json_value(field, item, version) for item in value]
    if isinstance(value, Struct):
        return to_json(value, version)
    if isinstance(value, bytes | memoryview):
        is_uuid = "uuid" in (field.kind, field.element)
        return encode_uuid(bytes(value)) if is_uuid else b64encode(value).decode()
    return value


def _dump(content: object) -> str:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


_OFFSETS_SCHEMAS: dict[int, tuple[type[Message], type[Message]]] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    11: (ShareGroupMetadataKey, ShareGroupMetadataValue),
    12: (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    13: (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    14: (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    15: (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    17: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    19: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    20: (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    21: (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    22: (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    23: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
}
TRANSACTION_SCHEMAS: dict[int, tuple[type[Message], type[Message]]] = {
    0: (TransactionLogKey, TransactionLogValue)
}
OFFSET_SCHEMAS = {kind: _OFFSETS_SCHEMAS[kind] for kind in (0, 1)}
GROUP_SCHEMAS = {2: _OFFSETS_SCHEMAS[2]}
SHARE_GROUP_SCHEMAS = {kind: _OFFSETS_SCHEMAS[kind] for kind in range(10, 16)}

SHARE_STATE_SCHEMAS: dict[int, tuple[type[Message], type[Message]]] = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}


def offsets_text(record: Record) -> RecordText:
    """Return the text of a record of `__consumer_offsets`."""
    return _coordinator_text(record, _OFFSETS_SCHEMAS)


def transaction_text(record: Record) -> RecordText:
    """Return the text of a record of `__transaction_state`."""
    return _coordinator_text(record, TRANSACTION_SCHEMAS)


def share_state_text(record: Record) -> RecordText:
    """Return the text of a record of `__share_group_state`."""
    return _coordinator_text(record, SHARE_STATE_SCHEMAS)


def _coordinator_text(
    record: Record, schemas: dict[int, tuple[type[Message], type[Message]]]
) -> RecordText:
    if record.key is None:
        raise ValueError(
            f"Failed to decode message at offset {record.offset} using the specified decoder "
            "(message had a missing key)"
        )
    try:
        opened = open_record(record.key, record.value, schemas)
    except (DecodeError, ValueError) as error:
        return RecordText(f"Error at offset {record.offset}, skipping. {error}", None)
    if opened is None:
        kind = _version(record.key, "key")
        return RecordText(f"Unknown record type {kind} at offset {record.offset}, skipping.", None)
    key_text = _dump({"type": str(opened.kind), "data": to_json(opened.key, 0)})
    value, version = opened.value, opened.version
    if value is None:
        return RecordText(key_text, DELETE)
    content = to_json(value, version)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == "consumer":
        _open_members(value, content)
    return RecordText(key_text, _dump({"version": str(version), "data": content}))


class OpenedRecord(NamedTuple):
    """A coordinator's record; its value is None for a tombstone."""

    kind: int
    key: Message
    version: int
    value: Message | None


def open_record(
    key: bytes, value: bytes | None, schemas: Mapping[int, tuple[type[Message], type[Message]]]
) -> OpenedRecord | None:
    """Decode a record whose key starts with its type and whose value with its version.

    Return None for a type outside the schemas. Raise DecodeError, ValueError.
    """
    kind = _version(key, "key")
    if kind not in schemas:
        return None
    key_class, value_class = schemas[kind]
    opened_key = decode_struct(key_class, 0, key[2:])
    if value is None:
        return OpenedRecord(kind, opened_key, 0, None)
    version = _version(value, "value")
    return OpenedRecord(kind, opened_key, version, decode_struct(value_class, version, value[2:]))


def _version(data: bytes, part: str) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError(f"Could not read version from {part}'s buffer.")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _open_members(group: GroupMetadataValue, content: dict[str, Any]) -> None:
    """Decode the clients' bytes in a group: their subscriptions and assignments."""
    for member, shown in zip(group.members, content["members"], strict=True):
        for name, schema in (
            ("subscription", ConsumerProtocolSubscription),
            ("assignment", ConsumerProtocolAssignment),
        ):
            try:
                version = _version(getattr(member, name), name)
                opened = decode_struct(schema, version, getattr(member, name)[2:])
                shown[name] = to_json(opened, version)
            except (DecodeError, ValueError):
                continue  # Not the consumer protocol: the bytes stay.


def open_frame(data: bytes) -> tuple[int, int, bytes]:
    """Return the type, the version and the content of a metadata record; raise DecodeError."""
    numbers, position = [], 0
    for name in ("frame version", "type", "version"):
        try:
            number, position = decode_uvarint(data, position)
        except IndexError:
            raise DecodeError(f"Error while reading {name}") from None
        if name == "frame version" and number != 1:
            raise DecodeError(
                "Could not deserialize metadata record due to unknown frame version "
                f"{number}(only frame version 1 is supported)"
            )
        numbers.append(number)
    _, api_key, version = numbers
    return api_key, version, data[position:]


def metadata_text(record: Record) -> RecordText:
    """Return the text of a record of `__cluster_metadata` or of its snapshot."""
    data = record.value or b""
    try:
        api_key, version, body = open_frame(data)
        schema = METADATA_RECORDS.get(api_key)
        if schema is None:
            raise DecodeError(f"Unknown metadata record type {api_key}")
        content = to_json(decode_struct(schema, version, body), version)
    except (DecodeError, ValueError) as error:
        return RecordText(None, f"Error at {record.offset}, skipping. {error}")
    kind = re.sub("(?<!^)([A-Z])", r"_\1", schema.__name__).upper()
    return RecordText(None, _dump({"type": kind, "version": version, "data": content}))


_CONTROL_SCHEMAS: dict[int, tuple[str, type[Message]]] = {
    ControlType.LEADER_CHANGE: ("LeaderChange:", LeaderChangeMessage),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
    ControlType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}


def control_text(record: Record) -> str:
    """Return the text of a control record: a transaction's end, or one of Raft's."""
    try:
        marker = end_marker(record)
        if marker is not None:
            outcome = "COMMIT" if marker.is_commit else "ABORT"
            return f"endTxnMarker: {outcome} coordinatorEpoch: {marker.coordinator_epoch}"
        number = control_type(record.key)
        if number not in _CONTROL_SCHEMAS:
            return f"controlType: UNKNOWN({number})"
        name, schema = _CONTROL_SCHEMAS[number]
        version = _version(record.value or b"", "value")
        return (
            f"{name} {_dump(to_json(decode_struct(schema, version, record.value or b''), version))}"
        )
    except (CorruptBatch, DecodeError, ValueError) as error:
        return f"controlType: {error}"
