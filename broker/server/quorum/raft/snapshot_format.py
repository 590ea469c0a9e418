"""The format of a snapshot: record batches, with a control record at either end (KIP-630).

The first batch has the `SnapshotHeaderRecord` and, if the voters are formatted and not configured,
the voters (KIP-853). The last batch has the `SnapshotFooterRecord`: without it the snapshot is not
complete. Offsets count from 0 within the snapshot.
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

RECORDS_PER_BATCH = 500
KRAFT_VERSION = 1
"""The finalized level of `kraft.version` for a quorum whose voters are in the log."""


def _control_record(number: ControlType, message: Message, timestamp_ms: int) -> NewRecord:
    key = (0).to_bytes(2, "big") + int(number).to_bytes(2, "big")
    return key, encode_struct(message, 0), (), timestamp_ms


def build_control_batch(number: ControlType, message: Message, timestamp_ms: int) -> bytes:
    """Make a batch of one of Raft's control records."""
    return build_batch([_control_record(number, message, timestamp_ms)], is_control=True)


class SnapshotWriter:
    """Makes the parts of one snapshot in their order: `start`, any number of `batch`, `end`."""

    def __init__(self, leader_epoch: int, timestamp_ms: int) -> None:
        self._leader_epoch = leader_epoch
        self._timestamp_ms = timestamp_ms
        self._offset = 0

    def start(self, last_contained_timestamp_ms: int, voters: VotersRecord | None) -> bytes:
        """Make the header, with the voters if these are not configured."""
        now_ms = self._timestamp_ms
        header = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_timestamp_ms)
        records = [_control_record(ControlType.SNAPSHOT_HEADER, header, now_ms)]
        if voters is not None:
            version = KRaftVersionRecord(k_raft_version=KRAFT_VERSION)
            records.append(_control_record(ControlType.KRAFT_VERSION, version, now_ms))
            records.append(_control_record(ControlType.KRAFT_VOTERS, voters, now_ms))
        return self._build(records, is_control=True)

    def batch(self, values: Sequence[bytes]) -> bytes:
        """Make a batch of records."""
        records: list[NewRecord] = [(None, value, (), self._timestamp_ms) for value in values]
        return self._build(records)

    def end(self) -> bytes:
        """Make the footer."""
        footer = SnapshotFooterRecord()
        record = _control_record(ControlType.SNAPSHOT_FOOTER, footer, self._timestamp_ms)
        return self._build([record], is_control=True)

    def _build(self, records: list[NewRecord], *, is_control: bool = False) -> bytes:
        offset, self._offset = self._offset, self._offset + len(records)
        return build_batch(
            records, base_offset=offset, leader_epoch=self._leader_epoch, is_control=is_control
        )


def build_snapshot(
    values: Sequence[bytes],
    leader_epoch: int,
    last_contained_timestamp_ms: int,
    timestamp_ms: int,
    voters: VotersRecord | None = None,
) -> bytes:
    """Make a whole snapshot of the records of a state."""
    writer = SnapshotWriter(leader_epoch, timestamp_ms)
    starts = range(0, len(values), RECORDS_PER_BATCH)
    first = writer.start(last_contained_timestamp_ms, voters)
    batches = [writer.batch(values[start : start + RECORDS_PER_BATCH]) for start in starts]
    return b"".join([first, *batches, writer.end()])


def snapshot_values(data: bytes) -> Iterator[bytes]:
    """Read the records of a whole snapshot; raises CorruptBatch if it is damaged."""
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
    """Read the voters from the first batch of a snapshot; None if it has none."""
    batch = batch_at(start)
    if batch is None or not batch.has_valid_crc:
        raise CorruptBatch("the snapshot's first batch is damaged")
    for record in batch.records():
        if control_type(record.key) == ControlType.KRAFT_VOTERS:
            return decode_struct(VotersRecord, 0, record.value or b"")
    return None
