"""What is in a snapshot: record batches, with a control record at either end (KIP-630).

The first batch has the `SnapshotHeaderRecord`, the last the `SnapshotFooterRecord`: without it the
snapshot is not complete. Offsets count from 0 within the snapshot.
"""

from collections.abc import Iterator, Sequence

from broker.protocol.message import Message
from broker.protocol.records.quorum import SnapshotFooterRecord, SnapshotHeaderRecord
from broker.protocol.structs import encode_struct
from broker.records.batch import split_batches
from broker.records.build import build_batch
from broker.records.control import ControlType, control_type
from broker.records.errors import CorruptBatch

RECORDS_PER_BATCH = 1_000


def build_control_batch(
    number: ControlType, message: Message, timestamp_ms: int, base_offset: int = 0, epoch: int = -1
) -> bytes:
    """Make a batch of one of Raft's control records."""
    key = (0).to_bytes(2, "big") + int(number).to_bytes(2, "big")
    record = (key, encode_struct(message, 0), (), timestamp_ms)
    return build_batch([record], is_control=True, base_offset=base_offset, leader_epoch=epoch)


def build_snapshot(
    values: Sequence[bytes], leader_epoch: int, last_contained_timestamp_ms: int, timestamp_ms: int
) -> bytes:
    """Make a snapshot of the records that a state adds up from."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_timestamp_ms)
    parts = [
        build_control_batch(ControlType.SNAPSHOT_HEADER, header, timestamp_ms, epoch=leader_epoch)
    ]
    for start in range(0, len(values), RECORDS_PER_BATCH):
        chunk = values[start : start + RECORDS_PER_BATCH]
        records = [(None, value, (), timestamp_ms) for value in chunk]
        parts.append(build_batch(records, base_offset=start + 1, leader_epoch=leader_epoch))
    parts.append(
        build_control_batch(
            ControlType.SNAPSHOT_FOOTER,
            SnapshotFooterRecord(),
            timestamp_ms,
            base_offset=len(values) + 1,
            epoch=leader_epoch,
        )
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
