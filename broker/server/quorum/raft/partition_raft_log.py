"""`RaftLog` over a `PartitionLog` and its snapshots.

Invariants, which opening the log restores after a crash at any point:
- The log starts at 0, or at the end of the oldest snapshot.
- The log ends at or after the end of the newest snapshot.

The order that keeps them: a snapshot is complete on disk before records are removed; older
snapshots are removed from disk before the records that continue them.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from broker.log.append import AppendOrigin
from broker.log.config import LogConfig
from broker.log.partition_log import PartitionLog
from broker.model import OffsetAndEpoch, TopicPartition
from broker.raft.config import METADATA_PARTITION as PARTITION_NUMBER
from broker.raft.config import METADATA_TOPIC
from broker.records.batch import RecordBatch, split_batches
from broker.records.control import control_type
from broker.records.errors import CorruptBatch
from broker.records.header import BytesLike
from broker.server.quorum.raft.snapshot_files import SnapshotFiles
from broker.server.quorum.raft.snapshot_format import build_control_batch, snapshot_values
from common.kafka.protocol.message import Message
from common.kafka.protocol.wire import DecodeError

METADATA_PARTITION = TopicPartition(METADATA_TOPIC, PARTITION_NUMBER)
MAX_BATCH_BYTES = 8 * 1024 * 1024
"""Kafka's KafkaRaftClient.MAX_BATCH_SIZE_BYTES: one decision is one batch, and so one unit."""


def metadata_log_config(segment_bytes: int = LogConfig().segment_bytes) -> LogConfig:
    """Return the settings of the metadata log: only records in a snapshot are removed."""
    return LogConfig(
        retention_ms=-1,
        retention_bytes=-1,
        cleanup_policy=(),
        max_message_bytes=MAX_BATCH_BYTES,
        segment_bytes=segment_bytes,
    )


log = logging.getLogger("millstream.quorum.log")

RECORDS_PER_STEP = 256
"""Reading one record takes about ten microseconds."""


class PartitionRaftLog:
    """The log of a Raft node in a `PartitionLog`; `wall_clock_ms` stamps what Raft itself writes.

    `decode` reads the value of one record and raises DecodeError: the leader's records have to be
    readable before they are written, because a node cannot start with unreadable records.
    """

    def __init__(
        self,
        log: PartitionLog,
        snapshots: SnapshotFiles,
        wall_clock_ms: Callable[[], int],
        decode: Callable[[bytes], object] | None = None,
    ) -> None:
        self._decode = decode
        self._read_ahead: BytesLike | None = None
        """The leader's batches that were checked to be readable."""
        self._refused = ""
        self._log = log
        self._snapshots = snapshots
        self._wall_clock_ms = wall_clock_ms
        self._repair()

    def _repair(self) -> None:
        """Complete the operations that a crash may have interrupted."""
        snapshot_ids = self._snapshots.ids
        start_offset = self._log.log_start_offset
        if start_offset and (not snapshot_ids or snapshot_ids[-1].offset < start_offset):
            raise CorruptBatch(
                f"{self._log.directory} begins at offset {start_offset}, and the snapshot of what "
                "came before is not there: restore it"
            )
        if not snapshot_ids:
            return
        newest = snapshot_ids[-1]
        if newest.offset > self.end_offset or newest.leader_epoch > self._log.leader_epoch >= 0:
            self._log.truncate_fully_and_start_at(newest.offset, self._wall_clock_ms())
        self._snapshots.remove_before(self._log.log_start_offset)
        self._start_at(self._snapshots.ids[0].offset)

    @property
    def start_offset(self) -> int:
        """Return the first offset that can be read."""
        return self._log.log_start_offset

    @property
    def end_offset(self) -> int:
        """Return the offset of the next record."""
        return self._log.log_end_offset

    @property
    def last_epoch(self) -> int:
        """Return the epoch of the last record, or of the newest snapshot; 0 for an empty log."""
        if self._log.leader_epoch >= 0:
            return self._log.leader_epoch
        return self._snapshots.ids[-1].leader_epoch if self._snapshots.ids else 0

    def append_as_leader(self, batch: BytesLike, leader_epoch: int) -> int:
        """Append one batch at the next offsets; return the new end offset. Raises KafkaError."""
        self._log.append_as_leader(
            batch,
            leader_epoch=leader_epoch,
            timestamp_ms=self._wall_clock_ms(),
            origin=AppendOrigin.RAFT_LEADER,
        )
        return self._log.log_end_offset

    def append_control(self, messages: Sequence[Message], leader_epoch: int) -> int:
        """Append one batch of Raft's own records; return the new end offset."""
        batch = build_control_batch(messages, self._wall_clock_ms())
        return self.append_as_leader(batch, leader_epoch)

    def read_ahead(self, records: BytesLike) -> Iterator[None]:
        """Check the leader's batches in steps, so that appending them is quick.

        An unreadable batch raises no error here; the append refuses it.
        """
        read_count = 0
        with suppress(CorruptBatch):
            for batch in split_batches(records):
                for _ in self._values_of(batch):
                    read_count += 1
                    if not read_count % RECORDS_PER_STEP:
                        yield
            self._read_ahead = records

    def append_as_follower(self, records: BytesLike, leader_epoch: int) -> None:
        """Append the leader's batches unchanged; raises CorruptBatch if the offsets have a gap."""
        with self._telling_of_refusals():
            expected = OffsetAndEpoch(self.end_offset, self.last_epoch)
            is_read = records is self._read_ahead
            self._read_ahead = None
            for batch in split_batches(records):
                self._validate_batch(batch, expected, leader_epoch)
                for _ in () if is_read else self._values_of(batch):
                    pass
                expected = OffsetAndEpoch(batch.next_offset, batch.header.partition_leader_epoch)
            self._log.append_as_follower(records, timestamp_ms=self._wall_clock_ms())

    def _validate_batch(
        self, batch: RecordBatch, expected: OffsetAndEpoch, leader_epoch: int
    ) -> None:
        offset, header = batch.base_offset, batch.header
        if offset != expected.offset:
            raise CorruptBatch(f"batch {offset} does not follow on {expected.offset - 1}")
        if not expected.leader_epoch <= header.partition_leader_epoch <= leader_epoch:
            raise CorruptBatch(
                f"batch {offset} has epoch {header.partition_leader_epoch}, which is not in "
                f"{expected.leader_epoch}..{leader_epoch}"
            )
        if header.producer_id >= 0 or header.record_count != header.last_offset_delta + 1:
            raise CorruptBatch(f"batch {offset} is none that a controller writes")
        if not batch.has_valid_crc:
            raise CorruptBatch(f"batch {offset} fails its CRC")

    def _values_of(self, batch: RecordBatch) -> Iterator[None]:
        """Read every record; raises CorruptBatch at one that cannot be read."""
        for record in batch.records():
            if batch.header.is_control:
                control_type(record.key)
            elif record.value is not None:
                self._read(record.value)
            yield

    def _read(self, value: bytes) -> None:
        try:
            if self._decode is not None:
                self._decode(value)
        except DecodeError as error:
            raise CorruptBatch(f"a record cannot be read: {error}") from error

    @contextmanager
    def _telling_of_refusals(self) -> Iterator[None]:
        """Log a refused batch once: it is fetched again until the leader sends another one."""
        try:
            yield
        except CorruptBatch as error:
            if str(error) != self._refused:
                self._refused = str(error)
                log.warning("refused what the leader sent: %s", error)
            raise

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Read whole batches, at least one unless `offset` is the end offset."""
        found = self._log.read(offset, max_bytes=max_bytes, max_offset=self._log.log_end_offset)
        return b"".join(part if isinstance(part, bytes) else part.read() for part in found.parts)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch at or below the given one, and its end offset."""
        if epoch >= self.last_epoch:
            return OffsetAndEpoch(self.end_offset, self.last_epoch)
        found_epoch, end_offset = self._log.end_offset_for_epoch(epoch)
        if found_epoch >= 0 and end_offset > self.start_offset:
            return OffsetAndEpoch(end_offset, found_epoch)
        snapshot_ids = self._snapshots.ids
        return OffsetAndEpoch(
            self.start_offset, snapshot_ids[0].leader_epoch if snapshot_ids else 0
        )

    def truncate_to(self, offset: int) -> None:
        """Truncate the log to an offset."""
        assert offset >= self.start_offset, (offset, self.start_offset)
        self._log.truncate_to(offset)

    def flush(self) -> None:
        """Return when all appends and truncations survive a power failure."""
        self._log.flush()

    # Snapshots.

    def snapshot_ids(self) -> list[OffsetAndEpoch]:
        """List the complete snapshots, the oldest first."""
        return self._snapshots.ids

    def snapshot_size_bytes(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """Return a snapshot's size; None if there is no such snapshot."""
        return self._snapshots.size_bytes(snapshot_id)

    def read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        """Read a part of a snapshot."""
        return self._snapshots.read(snapshot_id, position, max_bytes)

    def write_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, data: BytesLike) -> None:
        """Write a part of an unfinished snapshot; position 0 starts it again."""
        self._snapshots.write(snapshot_id, position, data)

    def install_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Complete a snapshot of the leader's; the log then starts and ends at its end.

        Raises CorruptBatch for an unreadable snapshot, and removes it.
        """
        if self._decode is not None:
            try:
                with self._telling_of_refusals():
                    for value in snapshot_values(self._snapshots.read_unfinished(snapshot_id)):
                        self._read(value)
            except CorruptBatch:
                self._snapshots.abandon(snapshot_id)
                raise
        self._snapshots.finish(snapshot_id)
        self._log.truncate_fully_and_start_at(snapshot_id.offset, self._wall_clock_ms())
        self._snapshots.remove_before(snapshot_id.offset)

    def finish_snapshot(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Keep a snapshot of this node's own state that was written part by part.

        Return False if a later one of the leader's has arrived meanwhile: this one is then removed.
        """
        if snapshot_id.offset < self.start_offset:
            self._snapshots.abandon(snapshot_id)
            return False
        self._snapshots.finish(snapshot_id)
        return True

    def delete_before_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Drop the records and the older snapshots that a snapshot replaces."""
        assert snapshot_id in self._snapshots.ids, snapshot_id
        self._snapshots.remove_before(snapshot_id.offset)
        self._start_at(snapshot_id.offset)
        self._log.delete_old_segments(self._wall_clock_ms())

    def _start_at(self, offset: int) -> None:
        if offset > self._log.log_start_offset:
            # The records in a snapshot are committed, even if this process does not know it yet.
            self._log.advance_high_watermark(offset)
            self._log.delete_records_before(offset)
