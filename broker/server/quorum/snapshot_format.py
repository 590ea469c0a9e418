"""What is in a snapshot: record batches, with a control record at either end (KIP-630).

The first batch has the `SnapshotHeaderRecord` and, where the voters are not configured but were
formatted, who votes (KIP-853). The last has the `SnapshotFooterRecord`: without it the snapshot is
not complete. Offsets count from 0 within the snapshot.
"""

from collections.abc import Iterator, Sequence

from broker.protocol.message import Message
from broker.protocol.records.quorum import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from broker.protocol.structs import decode_struct, encode_struct
from broker.records.batch import batch_at, split_batches
from broker.records.build import build_batch
from broker.records.control import ControlType, control_type
from broker.records.errors import CorruptBatch
from broker.records.record import NewRecord

RECORDS_PER_BATCH = 1_000
KRAFT_VERSION = 1
"""Of a quorum whose voters are in the log: the finalized level of `kraft.version`."""


def _control_record(number: ControlType, message: Message, timestamp_ms: int) -> NewRecord:
    key = (0).to_bytes(2, "big") + int(number).to_bytes(2, "big")
    return key, encode_struct(message, 0), (), timestamp_ms


def build_control_batch(number: ControlType, message: Message, timestamp_ms: int) -> bytes:
    """Make a batch of one of Raft's control records."""
    return build_batch([_control_record(number, message, timestamp_ms)], is_control=True)


def build_snapshot(
    values: Sequence[bytes],
    leader_epoch: int,
    last_contained_timestamp_ms: int,
    timestamp_ms: int,
    voters: VotersRecord | None = None,
) -> bytes:
    """Make a snapshot of the records that a state adds up from."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_timestamp_ms)
    first = [_control_record(ControlType.SNAPSHOT_HEADER, header, timestamp_ms)]
    if voters is not None:
        version = KRaftVersionRecord(k_raft_version=KRAFT_VERSION)
        first.append(_control_record(ControlType.KRAFT_VERSION, version, timestamp_ms))
        first.append(_control_record(ControlType.KRAFT_VOTERS, voters, timestamp_ms))
    parts = [build_batch(first, is_control=True, leader_epoch=leader_epoch)]
    offset = len(first)
    for start in range(0, len(values), RECORDS_PER_BATCH):
        chunk = values[start : start + RECORDS_PER_BATCH]
        records = [(None, value, (), timestamp_ms) for value in chunk]
        parts.append(build_batch(records, base_offset=offset, leader_epoch=leader_epoch))
        offset += len(chunk)
    footer = _control_record(ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), timestamp_ms)
    parts.append(
        build_batch([footer], is_control=True, base_offset=offset, leader_epoch=leader_epoch)
    )
    return b"".join(parts)


def snapshot_values(data: bytes) -> Iterator[bytes]:
    """Read the records of a whole snapshot; raises CorruptBatch when it is not one."""
    is_complete = False
    for batch in split_batches(data):
        if not batch.has_valid_crc:
            raise CorruptBatch(f"batch {batch.base_offset} of the snapshot fails its CRC")
        for record in batch.records():
            if batch.header.is_control:
                is_complete = control_type(record.key) == ControlType.SNAPSHOT_FOOTER
            elif record.value is not None:
                yield record.value
    if not is_complete:
        raise CorruptBatch("the snapshot has no footer")


def snapshot_voters(start: bytes) -> VotersRecord | None:
    """Read who votes from the first batch of a snapshot; None when it does not say."""
    batch = batch_at(start)
    if batch is None or not batch.has_valid_crc:
        raise CorruptBatch("the snapshot's first batch is damaged")
    for record in batch.records():
        if control_type(record.key) == ControlType.KRAFT_VOTERS:
            return decode_struct(VotersRecord, 0, record.value or b"")
    return None
