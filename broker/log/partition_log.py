"""The log of one partition, as the server, the coordinators and the Raft driver use it.

Invariants:

- `log_start_offset` <= `last_stable_offset` <= `high_watermark` <= `log_end_offset`.
- Everything below `recovery_point` survives a power failure.
- All methods are called from one owner thread, except `FlushWork.run`, a `CleaningRun` and the
  reading of file regions, which use only data that does not change.

Open a log with `recovery.open_partition_log`, or through `LogDirectories`. An `OSError` from any
method means that the log directory has failed; the log must not be used after that.
"""

import logging

from broker.log.append import (
    AppendInfo,
    AppendOrigin,
    append_as_follower,
    append_as_leader,
    base_of_batch_across,
)
from broker.log.config import LogConfig
from broker.log.local_log import AppendLimits, LocalLog
from broker.log.names import DELETED_EXTENSION, SUFFIXES
from broker.log.producers.verification import NO_TRANSACTION, TransactionAppend
from broker.log.read import LogRead, TimestampAndOffset, max_timestamp, offset_for_timestamp, read
from broker.log.replay import load_producers
from broker.log.retention import expired_segments
from broker.log.segment import Segment
from broker.log.walk import walk_batches
from broker.records.errors import CorruptBatch
from broker.records.header import BytesLike
from common.kafka.errors import ErrorCode, KafkaError

_logger = logging.getLogger(__name__)


class PartitionLog(LocalLog):
    """The log of one partition: appends, reads, truncation, retention and flushes.

    It has one owner thread. An `OSError` from any method means that the log directory has failed,
    and that the log must not be used after that.
    """

    @property
    def last_stable_offset(self) -> int:
        """The end offset for read_committed readers: the first open transaction, or the high
        watermark."""
        producers = self.producers
        if not producers.ongoing and not producers.unreplicated:
            return self.high_watermark  # Every Fetch asks, mostly without open transactions.
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
        """Append one batch; raise KafkaError with Kafka's code, with nothing changed, to refuse.

        A repeat of one of the producer's last five batches returns the first result again, with
        `is_duplicate`. `records` is neither kept nor changed.
        """
        return append_as_leader(self, records, leader_epoch, timestamp_ms, origin, transaction)

    def append_as_follower(self, records: BytesLike, *, timestamp_ms: int = 0) -> AppendInfo:
        """Append the leader's batches byte for byte; raise CorruptBatch.

        An empty log accepts a first batch that extends across its start: records may be deleted up
        to any offset, but batches are copied whole.
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

        For a consumer of a compacted topic, the first batch has records; a replica gets every
        batch. Raise OFFSET_OUT_OF_RANGE or CORRUPT_MESSAGE.
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
        """Return the first record at or after a time, None if there is none."""
        try:
            return offset_for_timestamp(self, timestamp_ms)
        except CorruptBatch as error:
            raise self._corrupt(error) from error

    def max_timestamp(self) -> TimestampAndOffset | None:
        """Return the record with the largest timestamp, None for an empty log."""
        try:
            return max_timestamp(self)
        except CorruptBatch as error:
            raise self._corrupt(error) from error

    def _corrupt(self, error: CorruptBatch) -> KafkaError:
        """Return the error for one unreadable read; the rest of the log is still served."""
        _logger.error("cannot be read partition=%s reason=%s", self.topic_partition, error)
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.topic_partition}: {error}")

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return the largest epoch at or below `leader_epoch` and its end; (-1, -1) if unknown."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def become_leader(self, leader_epoch: int) -> None:
        """Note that a new leader epoch starts at the log's end."""
        self.epochs.assign(leader_epoch, self.log_end_offset)

    def advance_high_watermark(self, offset: int) -> bool:
        """Advance the high watermark, at most to the log's end; return True if it moved."""
        offset = min(offset, self.log_end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        if self.producers.unreplicated:
            self.producers.on_high_watermark(offset)
        return True

    def update_config(self, config: LogConfig) -> None:
        """Apply changed settings."""
        self.config = config
        self.append_limits = AppendLimits.of(config)

    def close(self) -> None:
        """Flush and close the log for a clean stop; it must not be used afterwards."""
        if self.prepare_close():
            self.flush()

    def prepare_close(self) -> bool:
        """Write the indexes and the snapshot for a clean stop; return True if a flush is needed.

        That flush writes the epochs, or the caller of `note_all_synced` does before its sync.
        """
        if not self.has_files:
            return False
        self.segments.active.close_indexes()
        self.producers.map_end_offset = self.log_end_offset
        self.producers.take_snapshot()
        is_behind = self.recovery_point < self.log_end_offset or self.epochs.is_changed
        return is_behind or bool(self.prepare_flush().segments)

    def note_all_synced(self) -> None:
        """Note that the whole file system has been synced."""
        for segment in self.segments:
            segment.note_synced()
        self.producers.unsynced_snapshots.clear()
        self.has_new_names = self.has_new_directory = False

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start offset (DeleteRecords); -1 stands for the high watermark.

        The next `delete_old_segments` deletes the segments below it. Raise OFFSET_OUT_OF_RANGE.
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
        """Delete the segments that retention allows to delete; return their number."""
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
        """Remove a segment from the log, and delete its files after `file.delete.delay.ms`."""
        self.segments.remove(segment)
        segment.rename(DELETED_EXTENSION)
        due_ms = timestamp_ms + self.config.file_delete_delay_ms
        for suffix in SUFFIXES:
            self.place.deletion.schedule(segment.path(suffix) + DELETED_EXTENSION, due_ms)
        self.has_new_names = True

    def truncate_to(self, offset: int) -> int:
        """Remove everything from an offset on; return the new log end offset.

        A batch is never split: if `offset` is within one, the whole batch is removed.
        """
        if offset >= self.log_end_offset:
            # No other replica may know an epoch in which this one led without appending a record.
            self.epochs.truncate_from_end(self.log_end_offset)
            return self.log_end_offset
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return offset
        last, *following = self.segments.from_offset(offset)
        end_offset = min(offset, last.start_of(offset))
        self._lower_recovery_point(end_offset)
        # A new leader seldom lacks more than a few batches: what they do not change is kept, since
        # to read it anew takes as long as the whole log is, and nobody is served meanwhile.
        keeps_producers = not following and self._is_free_of_producers(last, end_offset)
        self.remove_segments(following)
        last.activate(self.append_limits.index_interval_bytes)
        last.truncate(offset, self.append_limits.index_interval_bytes)
        self._end_at(end_offset, keeps_producers=keeps_producers)
        return end_offset

    def _is_free_of_producers(self, segment: Segment, offset: int) -> bool:
        """Return True if no batch from an offset on has a producer id or is below the high
        watermark, so that the producers are the same without them."""
        if offset < self.high_watermark:
            return False
        try:
            batches = walk_batches(segment.file, segment.position_of(offset), segment.size_bytes)
            return all(batch.header.producer_id < 0 for _, batch in batches)
        except CorruptBatch:
            return False

    def remove_segments(self, segments: list[Segment]) -> None:
        """Delete segments at the log's end, the last one first.

        The deletion is durable at once: if a power failure brought one back after new appends
        before it, the log would have a gap.
        """
        for segment in reversed(segments):
            self.segments.remove(segment)
            segment.remove()
        if segments:
            self.place.storage.sync_directory(self.directory)

    def truncate_fully_and_start_at(self, offset: int, timestamp_ms: int = 0) -> None:
        """Remove all records; the log then starts and ends at `offset`."""
        self._lower_recovery_point(offset)
        self.remove_segments(list(self.segments))
        self.add_segment(offset, timestamp_ms)
        self.epochs.clear()
        self.producers.clear(offset)
        self.log_start_offset = self.log_end_offset = self.high_watermark = offset
        self.recovery_point = offset

    def _lower_recovery_point(self, offset: int) -> None:
        """Write a lower recovery point before synced records are replaced by other ones."""
        if offset < self.recovery_point:
            self.recovery_point = offset
            self.place.on_recovery_point_lowered()

    def _end_at(self, offset: int, *, keeps_producers: bool) -> None:
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.first_dirty_offset = min(self.first_dirty_offset, offset)
        self.epochs.truncate_from_end(offset)
        self.save_names()
        if keeps_producers:
            self.producers.drop_snapshots_after(offset)
            self.producers.map_end_offset = offset
        else:
            load_producers(self, 0)

    def move_to(self, directory: str) -> None:
        """Use another directory, after a rename; open files stay open."""
        self.directory = directory
        self.epochs.move_to(directory)
        self.producers.move_to(directory)
        for segment in self.segments:
            segment.move_to(directory)
