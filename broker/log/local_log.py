"""The state of one partition's log, and how the log grows and is synced.

`PartitionLog` adds the operations. The files that implement them (`append`, `read`, `retention`,
`replay`) take a `LocalLog` and do not know `PartitionLog`. The invariants are in `partition_log`.
"""

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from broker.log import checkpoints
from broker.log.config import LogConfig
from broker.log.flush import FlushQueue, FlushWork
from broker.log.leader_epochs import LeaderEpochs
from broker.log.names import LOG_SUFFIX, segment_path
from broker.log.producers.state import DEFAULT_EXPIRATION_MS, ProducerState
from broker.log.rewrite import needs_rewrite
from broker.log.segment import Segment
from broker.log.storage import DelayedDeletion, Storage
from broker.log.topic_settings import INT64_MAX
from broker.model import TopicPartition
from broker.records.header import INT32_MAX, BatchHeader
from broker.records.validation import BatchValidator, TimestampLimits

LOADED_CLOSED_SEGMENTS = 2
"""The number of closed segments per partition with an open file and loaded indexes.

A broker has thousands of partitions, and a process has at most about 20,000 file descriptors.
"""


class Segments:
    """Invariant: never empty once the log is open; base offsets ascend strictly."""

    __slots__ = ("_bases", "_loaded", "_segments", "active")

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._bases: list[int] = []
        self._loaded: list[Segment] = []
        self.active: Segment

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments[:])

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def first(self) -> Segment:
        """The oldest segment."""
        return self._segments[0]

    @property
    def size_bytes(self) -> int:
        """The size of all `.log` files."""
        return sum(segment.size_bytes for segment in self._segments)

    def add(self, segment: Segment) -> None:
        """Insert a segment at its place."""
        place = bisect_left(self._bases, segment.base_offset)
        self._segments.insert(place, segment)
        self._bases.insert(place, segment.base_offset)
        self.active = self._segments[-1]

    def remove(self, segment: Segment) -> None:
        """Remove a segment."""
        place = bisect_left(self._bases, segment.base_offset)
        assert self._segments[place] is segment, segment.base_offset
        del self._segments[place]
        del self._bases[place]
        if segment in self._loaded:
            self._loaded.remove(segment)
        if self._segments:
            self.active = self._segments[-1]

    def floor(self, offset: int) -> int:
        """Return the index of the segment of an offset; -1 if it is before the first one."""
        return bisect_right(self._bases, offset) - 1

    def from_offset(self, offset: int) -> list[Segment]:
        """Return the segments that may have offsets at or above `offset`."""
        return self._segments[max(0, self.floor(offset)) :]

    def note_use(self, segment: Segment) -> None:
        """Keep a closed segment loaded, and unload the least recently used one."""
        loaded = self._loaded
        if segment is self.active or (loaded and loaded[-1] is segment):
            return
        if segment in loaded:
            loaded.remove(segment)
        loaded.append(segment)
        if len(loaded) > LOADED_CLOSED_SEGMENTS:
            oldest = loaded.pop(0)
            if oldest is not self.active:
                oldest.unload()


_logger = logging.getLogger(__name__)
NEVER_MS = INT64_MAX
"""The default of `flush.ms`."""


@dataclass(frozen=True, slots=True)
class AppendLimits:
    """The settings that every append needs, computed once."""

    max_message_bytes: int
    segment_bytes: int
    index_interval_bytes: int
    index_bytes: int
    timestamps: TimestampLimits
    is_compacted: bool
    needs_rewrite: bool
    segment_age_ms: int
    flush_messages: int
    flush_ms: int

    @classmethod
    def of(cls, config: LogConfig) -> "AppendLimits":
        """Compute the limits from a topic's settings."""
        return cls(
            max_message_bytes=config.max_message_bytes,
            segment_bytes=min(config.segment_limit_bytes, INT32_MAX),
            index_interval_bytes=config.index_interval_bytes,
            index_bytes=config.segment_index_bytes,
            timestamps=TimestampLimits(
                config.uses_log_append_time,
                config.message_timestamp_before_max_ms,
                config.message_timestamp_after_max_ms,
            ),
            is_compacted=config.is_compacted,
            needs_rewrite=needs_rewrite(config),
            segment_age_ms=config.segment_age_limit_ms,
            flush_messages=config.flush_messages,
            flush_ms=config.flush_ms,
        )


@dataclass(frozen=True, slots=True)
class LogPlace:
    """The state that the logs of one log directory share."""

    storage: Storage
    deletion: DelayedDeletion
    on_recovery_point_lowered: Callable[[], None] = lambda: None
    """Called before records replace synced ones that were truncated (see `truncate_to`)."""
    producer_expiration_ms: int = DEFAULT_EXPIRATION_MS
    verifies_transactions: bool = False
    """transaction.partition.verification.enable"""
    flushes: "FlushQueue[LocalLog]" = field(default_factory=FlushQueue)
    validator: BatchValidator = field(default_factory=BatchValidator)


class LocalLog:
    """The state of one partition's log on which the files of this package work.

    Offsets are of records, times are milliseconds since 1970. It has one owner thread, and an
    `OSError` of any method means that the log directory has failed.
    """

    def __init__(
        self, topic_partition: TopicPartition, directory: str, config: LogConfig, place: LogPlace
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = bytes(16)
        self.directory = directory
        self.place = place
        self.config = config
        self.append_limits = AppendLimits.of(config)
        self.segments = Segments()
        self.epochs = LeaderEpochs(place.storage, directory)
        self.producers = ProducerState(place.storage, directory, place.producer_expiration_ms)
        self.producers.requires_verification = place.verifies_transactions
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.first_dirty_offset = 0
        """The end of the compacted part, stored in `cleaner-offset-checkpoint`."""
        self.is_uncleanable = False
        """True if the cleaner found unreadable records; it then skips this log."""
        self.transaction_index_sums: dict[int, int] = {}
        """The content of `transaction-index-checkpoint`, which reveals a lost `.txnindex`."""
        self.unflushed_records = 0
        self.has_new_names = False
        """True if files were created or renamed since the directory was last synced."""
        self.is_deleted = False
        """True if the partition was deleted, so that it needs no flush."""
        self.has_new_directory = False
        """True if the directory was created or renamed since its parent was last synced."""

    @property
    def leader_epoch(self) -> int:
        """The latest leader epoch in the log, -1 when there is none."""
        return self.epochs.latest_epoch

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        return self.segments.size_bytes

    @property
    def has_files(self) -> bool:
        """True if anything was ever written; an empty new partition needs no sync."""
        return self.segments.first.is_on_disk

    def maybe_roll(self, incoming_bytes: int, header: BatchHeader, timestamp_ms: int) -> bool:
        """Roll if the incoming batch must not go into the active segment; return True if rolled."""
        active, limits = self.segments.active, self.append_limits
        if not active.size_bytes:
            return False
        # A leader's batch has base offset 0 at this point; a follower's may follow a gap.
        last_offset = max(self.log_end_offset, header.base_offset) + header.last_offset_delta
        first_ms = active.first_timestamp_ms
        if first_ms is not None and first_ms >= 0:
            waited_ms = header.max_timestamp - first_ms
        else:
            waited_ms = timestamp_ms - active.created_ms
        if (
            active.size_bytes + incoming_bytes <= limits.segment_bytes
            and waited_ms <= limits.segment_age_ms - active.jitter_ms
            and active.has_room_for(last_offset, limits.index_bytes)
        ):
            return False
        self.roll(timestamp_ms)
        return True

    def roll(self, timestamp_ms: int) -> None:
        """Close the active segment, and start a new one at the log's end."""
        closed = self.segments.active
        closed.close_indexes()
        self.producers.map_end_offset = self.log_end_offset
        self.producers.take_snapshot()
        self.add_segment(self.log_end_offset, timestamp_ms)
        self.segments.note_use(closed)
        self.place.flushes.add(self, timestamp_ms)

    def add_segment(self, base_offset: int, timestamp_ms: int) -> None:
        """Add an empty active segment; the first one's file is created with its first record."""
        segment = Segment(self.place.storage, self.directory, base_offset, created_ms=timestamp_ms)
        segment.jitter_ms = self._jitter_ms(base_offset)
        if base_offset:
            assert segment.file.size_bytes() == 0, (self, base_offset)
        self.segments.add(segment)
        self.has_new_names = True

    def _jitter_ms(self, base_offset: int) -> int:
        """Return a jitter that spreads rolls, from names and offsets instead of a random source."""
        limit_ms = min(self.config.segment_jitter_ms, self.config.segment_ms)
        if not limit_ms:
            return 0
        spread = f"{self.topic_partition} {base_offset}".encode()
        return int.from_bytes(spread[-8:].rjust(8), "big") * 2654435761 % limit_ms

    def after_append(self, record_count: int, timestamp_ms: int) -> None:
        """Count an append for `flush.messages` and `flush.ms`; flush if due."""
        limits = self.append_limits
        if limits.flush_ms < NEVER_MS and not self.unflushed_records:
            self.place.flushes.add(self, timestamp_ms + limits.flush_ms)
        self.unflushed_records += record_count
        if self.unflushed_records >= limits.flush_messages:
            self.flush()

    def prepare_flush(self) -> FlushWork:
        """Return the work for a thread; pass it to `finish_flush` afterwards."""
        suspects = [] if self.is_deleted else self.segments.from_offset(self.recovery_point)
        unsynced = [segment for segment in suspects if segment.needs_sync]
        return FlushWork(unsynced, self.producers, self.log_end_offset, self.unflushed_records)

    def finish_flush(self, work: FlushWork) -> None:
        """Move the recovery point to the end of a flush, but not beyond the log's end."""
        if self.is_deleted:
            return
        self.save_names()
        if self.has_new_directory and self.has_files:
            checkpoints.sync_partition_metadata(self.place.storage, self.directory)
            self.place.storage.sync_directory(self.directory.rpartition("/")[0])
            self.has_new_directory = False
        self.recovery_point = max(self.recovery_point, min(work.end_offset, self.log_end_offset))
        self.unflushed_records = max(0, self.unflushed_records - work.record_count)

    def save_names(self) -> None:
        """Write the leader epochs, and make all file names survive a power failure."""
        self.save_index_sums()
        if self.epochs.save() or (self.has_new_names and self.has_files):
            self.place.storage.sync_directory(self.directory)
            self.has_new_names = False

    def save_index_sums(self) -> None:
        """Write the checksums of the transaction indexes if they have changed."""
        sums = {
            segment.base_offset: segment.transaction_index_crc
            for segment in self.segments
            if segment.transaction_index_crc is not None
        }
        if sums != self.transaction_index_sums:
            checkpoints.write_index_sums(self.place.storage, self.directory, sums)
            self.transaction_index_sums = sums

    def flush(self) -> None:
        """Make the whole log survive a power failure."""
        work = self.prepare_flush()
        work.run()
        self.finish_flush(work)


def inspect(log: LocalLog, segment: Segment) -> None:
    """Compare a closed segment's end with the start of the next one, before its first use.

    A clean start reads only the end of the active segment, and the names and sizes of the others.
    So that a damaged closed segment does not silently return fewer records, its last batches are
    read. Damage is logged once, with the file and the offsets; the readable part is served.
    """
    segment.is_inspected = True
    following = segment.next_offset
    end, next_offset, reason = segment.find_end()
    path, excess_bytes = segment.path(LOG_SUFFIX), segment.size_bytes - end
    # Compaction may have removed all records at the end of a segment.
    is_short = next_offset < following and not log.config.is_compacted
    if excess_bytes and next_offset == following:
        segment.size_bytes = end
        _logger.warning(
            "left out what is behind the last batch file=%s offset=%d bytes=%d reason=%s",
            path,
            next_offset,
            excess_bytes,
            reason,
        )
    elif excess_bytes or next_offset > following:
        _logger.error(
            "records cannot be read file=%s offset=%d next_segment=%d bytes=%d reason=%s: restore "
            "the file, or read on from the next one",
            path,
            next_offset,
            following,
            excess_bytes,
            reason or "offsets overlap",
        )
    elif is_short:
        _logger.error(
            "records are missing offset=%d next_segment=%d: %s ends before the next one begins, or "
            "%s is lost; it is read on from the next one",
            next_offset,
            following,
            path,
            segment_path(log.directory, next_offset, LOG_SUFFIX),
        )
