"""The log of one partition: what the server, the coordinators and the raft driver hold.

Invariants:
- `log_start_offset` <= `last_stable_offset` <= `high_watermark` <= `log_end_offset`.
- Everything below `recovery_point` survives a power failure.
- One owner: every method is called from one thread, but `FlushWork.run`, `CleaningRun.run` and
  the reading of regions, which touch only what does not change.

Open one with `recovery.open_partition_log`, or let `LogDirectories` do it. An `OSError` from any
method means the log directory has failed; the log is then not used any more.
"""

import logging

from broker.errors import ErrorCode, KafkaError
from broker.log.append import (
    AppendInfo,
    AppendOrigin,
    append_as_follower,
    append_as_leader,
    base_of_batch_across,
)
from broker.log.config import LogConfig
from broker.log.deletion import DELETED_EXTENSION
from broker.log.local_log import AppendLimits, LocalLog
from broker.log.producers.verification import NO_TRANSACTION, TransactionAppend
from broker.log.read import LogRead, TimestampAndOffset, max_timestamp, offset_for_timestamp, read
from broker.log.replay import load_producers
from broker.log.retention import expired_segments
from broker.log.segment import Segment
from broker.log.segment_names import SUFFIXES
from broker.records.errors import CorruptBatch
from broker.records.header import BytesLike

_logger = logging.getLogger(__name__)


class PartitionLog(LocalLog):
    """See the module."""

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed readers stop: the first open transaction, or the high watermark."""
        producers = self.producers
        if not producers.ongoing and not producers.unreplicated:
            return self.high_watermark  # What every fetch asks, mostly where there are none.
        unstable = producers.first_unstable_offset
        if unstable is None or unstable > self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    def append_as_leader(
        self,
        records: BytesLike,
        *,
        leader_epoch: int,
        timestamp_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction: TransactionAppend = NO_TRANSACTION,
    ) -> AppendInfo:
        """Append one batch; raises KafkaError with Kafka's code and then has changed nothing.

        A repeat of one of the producer's last five batches gives the first answer again, with
        `is_duplicate`. Nothing of `records` is kept or changed.
        """
        return append_as_leader(self, records, leader_epoch, timestamp_ms, origin, transaction)

    def append_as_follower(self, records: BytesLike, *, timestamp_ms: int = 0) -> AppendInfo:
        """Append the leader's batches byte for byte; raises CorruptBatch.

        An empty log takes a first batch that reaches over its start: records may be deleted up to
        any offset, and batches are copied whole.
        """
        start_offset = self.log_start_offset
        base_offset = None
        if start_offset == self.log_end_offset:
            base_offset = base_of_batch_across(records, start_offset)
        if base_offset is None:
            return append_as_follower(self, records, timestamp_ms)
        self.truncate_fully_and_start_at(base_offset, timestamp_ms)
        try:
            return append_as_follower(self, records, timestamp_ms)
        finally:
            self.advance_high_watermark(start_offset)
            self._advance_start(self.high_watermark)

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        max_offset: int,
        minimum_one_batch: bool = True,
        with_aborted_transactions: bool = False,
        is_replica: bool = False,
    ) -> LogRead:
        """Read from `offset` up to, not including, `max_offset`; see `broker.log.read`.

        A replica is given every batch, a consumer only such as begin with one that has records.
        """
        try:
            return read(
                self,
                offset,
                max_bytes,
                max_offset,
                minimum_one_batch=minimum_one_batch,
                with_aborted_transactions=with_aborted_transactions,
                is_replica=is_replica,
            )
        except CorruptBatch as error:
            raise self._corrupt(error) from error

    def offset_for_timestamp(self, timestamp_ms: int) -> TimestampAndOffset | None:
        """Give the first record at or after a time, None when there is none."""
        try:
            return offset_for_timestamp(self, timestamp_ms)
        except CorruptBatch as error:
            raise self._corrupt(error) from error

    def max_timestamp(self) -> TimestampAndOffset | None:
        """Give the record with the largest timestamp."""
        try:
            return max_timestamp(self)
        except CorruptBatch as error:
            raise self._corrupt(error) from error

    def _corrupt(self, error: CorruptBatch) -> KafkaError:
        """Refuse one request for what cannot be read; the rest of the log is served on."""
        _logger.error("cannot be read partition=%s reason=%s", self.topic_partition, error)
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.topic_partition}: {error}")

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Give (epoch, end offset) for the largest epoch at or below one; (-1, -1) if unknown."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def become_leader(self, leader_epoch: int) -> None:
        """Note that a new leader epoch begins at the log's end."""
        self.epochs.assign(leader_epoch, self.log_end_offset)

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark forward, at most to the log's end; tell whether it moved."""
        offset = min(offset, self.log_end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        if self.producers.unreplicated:
            self.producers.on_high_watermark(offset)
        return True

    def update_config(self, config: LogConfig) -> None:
        """Take over changed settings."""
        self.config = config
        self.append_limits = AppendLimits.of(config)

    def close(self) -> None:
        """Flush and leave everything as a clean stop should; the log is not used afterwards."""
        if self.prepare_close():
            self.flush()

    def prepare_close(self) -> bool:
        """Write what a clean stop leaves beside the records; tell whether a flush is due.

        The epochs are written with that flush, or by `note_all_synced`'s caller before the sync.
        """
        if not self.has_files:
            return False
        self.segments.active.close_indexes()
        self.producers.map_end_offset = self.log_end_offset
        self.producers.take_snapshot()
        is_behind = self.recovery_point < self.log_end_offset or self.epochs.is_changed
        return is_behind or bool(self.prepare_flush().segments)

    def note_all_synced(self) -> None:
        """Take notice that the whole file system has been synced."""
        for segment in self.segments:
            segment.note_synced()
        self.producers.unsynced_snapshots.clear()
        self.has_new_names = self.has_new_directory = False

    def delete_records_before(self, offset: int) -> int:
        """Move the log's start (DeleteRecords); -1 stands for the high watermark.

        The segments below go with the next `delete_old_segments`.
        """
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {offset} is beyond the high watermark {self.high_watermark}",
            )
        self._advance_start(offset)
        return self.log_start_offset

    def _advance_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def delete_old_segments(self, timestamp_ms: int) -> int:
        """Drop the segments that retention lets go; gives how many."""
        expired = expired_segments(self, timestamp_ms)
        if not expired:
            return 0
        if len(expired) == len(self.segments):
            self.roll(timestamp_ms)
        for segment in expired:
            self.discard_segment(segment, timestamp_ms)
        self._advance_start(max(self.log_start_offset, self.segments.first.base_offset))
        self.producers.drop_snapshots_before(self.segments.first.base_offset)
        return len(expired)

    def discard_segment(self, segment: Segment, timestamp_ms: int) -> None:
        """Take a segment out of the log and let its files go after a while."""
        self.segments.remove(segment)
        segment.rename(DELETED_EXTENSION)
        due_ms = timestamp_ms + self.config.file_delete_delay_ms
        for suffix in SUFFIXES:
            self.place.deletion.schedule(segment.path(suffix) + DELETED_EXTENSION, due_ms)
        self.has_new_names = True

    def truncate_to(self, offset: int) -> int:
        """Cut off everything from an offset on (follower, raft); gives the new log end offset.

        A batch is never split: when `offset` lies within one, the whole batch goes.
        """
        if offset >= self.log_end_offset:
            # An epoch that this replica led without a record may be one that no other knows.
            self.epochs.truncate_from_end(self.log_end_offset)
            return self.log_end_offset
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return offset
        last, *following = self.segments.from_offset(offset)
        end_offset = min(offset, last.start_of(offset))
        self._lower_recovery_point(end_offset)
        self.remove_segments(following)
        last.activate(self.append_limits.index_interval_bytes)
        last.truncate(offset, self.append_limits.index_interval_bytes)
        self._end_at(end_offset)
        return end_offset

    def remove_segments(self, segments: list[Segment]) -> None:
        """Remove segments at the log's end for good, the last first.

        Durable at once: should one come back with a power failure after others have been
        appended before it, the log would have a hole.
        """
        for segment in reversed(segments):
            self.segments.remove(segment)
            segment.remove()
        if segments:
            self.place.storage.sync_directory(self.directory)

    def truncate_fully_and_start_at(self, offset: int, timestamp_ms: int = 0) -> None:
        """Drop all records; the log begins and ends at an offset."""
        self._lower_recovery_point(offset)
        self.remove_segments(list(self.segments))
        self.add_segment(offset, timestamp_ms)
        self.epochs.clear()
        self.producers.clear(offset)
        self.log_start_offset = self.log_end_offset = self.high_watermark = offset
        self.recovery_point = offset

    def _lower_recovery_point(self, offset: int) -> None:
        """Say on disk that synced records are about to go, before others can take their place."""
        if offset < self.recovery_point:
            self.recovery_point = offset
            self.place.on_recovery_point_lowered()

    def _end_at(self, offset: int) -> None:
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.first_dirty_offset = min(self.first_dirty_offset, offset)
        self.epochs.truncate_from_end(offset)
        self.save_names()
        load_producers(self, 0)

    def move_to(self, directory: str) -> None:
        """Follow the directory, which has got another name; open files stay open."""
        self.directory = directory
        self.epochs.move_to(directory)
        self.producers.move_to(directory)
        for segment in self.segments:
            segment.move_to(directory)
