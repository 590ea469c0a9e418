"""The format of a snapshot: record batches, with a control record at either end (KIP-630).

The first batch has the `SnapshotHeaderRecord` and, with `kraft.version` 1, the voters (KIP-853).
The last batch has the `SnapshotFooterRecord`: without it the snapshot is not complete. Offsets
count from 0 within the snapshot.
"""

from collections.abc import Iterator, Sequence

from broker.raft.voter_set import DYNAMIC_VOTERS
from broker.records.batch import split_batches
from broker.records.build import build_batch
from broker.records.control import ControlType, control_type
from broker.records.errors import CorruptBatch
from broker.records.record import NewRecord
from common.kafka.protocol.message import Message
from common.kafka.protocol.records.quorum import (
    KRaftVersionRecord,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from common.kafka.protocol.structs import encode_struct

RECORDS_PER_BATCH = 500


def _control_record(message: Message, timestamp_ms: int) -> NewRecord:
    key = (0).to_bytes(2, "big") + message.__api_key__.to_bytes(2, "big")
    return key, encode_struct(message, 0), (), timestamp_ms


def build_control_batch(messages: Sequence[Message], timestamp_ms: int) -> bytes:
    """Make one batch of some of Raft's control records."""
    return build_batch([_control_record(each, timestamp_ms) for each in messages], is_control=True)


class SnapshotWriter:
    """Makes the parts of one snapshot in their order: `start`, any number of `batch`, `end`."""

    def __init__(self, leader_epoch: int, timestamp_ms: int) -> None:
        self._leader_epoch = leader_epoch
        self._timestamp_ms = timestamp_ms
        self._offset = 0

    def start(self, last_contained_timestamp_ms: int, voters: VotersRecord | None) -> bytes:
        """Make the header, with the voters of `kraft.version` 1."""
        now_ms = self._timestamp_ms
        header = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_timestamp_ms)
        records = [_control_record(header, now_ms)]
        if voters is not None:
            version = KRaftVersionRecord(k_raft_version=DYNAMIC_VOTERS)
            records.append(_control_record(version, now_ms))
            records.append(_control_record(voters, now_ms))
        return self._build(records, is_control=True)

    def batch(self, values: Sequence[bytes]) -> bytes:
        """Make a batch of records."""
        records: list[NewRecord] = [(None, value, (), self._timestamp_ms) for value in values]
        return self._build(records)

    def end(self) -> bytes:
        """Make the footer."""
        footer = SnapshotFooterRecord()
        record = _control_record(footer, self._timestamp_ms)
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
