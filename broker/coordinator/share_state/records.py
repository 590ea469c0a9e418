"""The records of `__share_group_state`, in Kafka's own schemas; keys and values have version 0."""

from collections.abc import Iterable
from struct import unpack_from
from typing import NamedTuple

from broker.coordinator.output import CoordinatorRecord
from broker.coordinator.share_state.batches import StateBatch
from broker.coordinator.share_state.state import SharePartition, SharePartitionKey, Update
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.share_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from common.kafka.protocol.records.share_state import StateBatch as BatchInRecord
from common.kafka.protocol.structs import decode_struct, encode_struct
from common.kafka.protocol.wire import DecodeError

SNAPSHOT, UPDATE = ShareSnapshotKey.__api_key__, ShareUpdateKey.__api_key__
VERSION = 0


class UpdateOf(NamedTuple):
    """An update, and the epoch of the snapshot that it follows."""

    update: Update
    snapshot_epoch: int


Content = SharePartition | UpdateOf | None


def snapshot_record(key: SharePartitionKey, state: SharePartition | None) -> CoordinatorRecord:
    """Encode a snapshot; None encodes the tombstone."""
    fields = ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    if state is None:
        return CoordinatorRecord(_encoded(SNAPSHOT, fields), None)
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.create_timestamp_ms,
        write_timestamp=state.write_timestamp_ms,
        state_batches=_encodable(state.batches),
    )
    return CoordinatorRecord(_encoded(SNAPSHOT, fields), _encoded(VERSION, value))


def update_record(key: SharePartitionKey, update: Update, snapshot_epoch: int) -> CoordinatorRecord:
    """Encode an update."""
    fields = ShareUpdateKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)
    value = ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=_encodable(update.batches),
    )
    return CoordinatorRecord(_encoded(UPDATE, fields), _encoded(VERSION, value))


def _encoded(number: int, message: Message) -> bytes:
    """Encode a key behind its type, or a value behind its version."""
    return number.to_bytes(2, "big") + encode_struct(message, VERSION)


def _encodable(batches: Iterable[StateBatch]) -> list[BatchInRecord]:
    return [
        BatchInRecord(
            first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
        )
        for first, last, state, count in batches
    ]


def decode_record(key: bytes, value: bytes | None) -> tuple[SharePartitionKey, Content] | None:
    """Decode a record: a snapshot, an update, or None for a tombstone.

    Return None for an unknown type of key, which a later version has written. Raise DecodeError for
    a damaged record.
    """
    kind = _number_before(key)
    if kind not in {SNAPSHOT, UPDATE}:
        return None
    fields = decode_struct(ShareSnapshotKey, VERSION, key[2:])  # Both keys have the same fields.
    share_partition = SharePartitionKey(fields.group_id, fields.topic_id, fields.partition)
    if value is None:
        return share_partition, None
    version = _number_before(value)
    if version != VERSION:
        raise DecodeError(f"value version {version} is unknown")
    if kind == SNAPSHOT:
        return share_partition, _snapshot_of(decode_struct(ShareSnapshotValue, VERSION, value[2:]))
    return share_partition, _update_of(decode_struct(ShareUpdateValue, VERSION, value[2:]))


def _number_before(data: bytes) -> int:
    if len(data) < 2:
        raise DecodeError(f"record of {len(data)} bytes has no version")
    number: int = unpack_from(">h", data)[0]
    return number


def _snapshot_of(value: ShareSnapshotValue) -> SharePartition:
    return SharePartition(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=_decoded(value.state_batches),
        create_timestamp_ms=value.create_timestamp,
        write_timestamp_ms=value.write_timestamp,
    )


def _update_of(value: ShareUpdateValue) -> UpdateOf:
    update = Update(
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=_decoded(value.state_batches),
    )
    return UpdateOf(update, value.snapshot_epoch)


def _decoded(batches: list[BatchInRecord]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in batches
    )
