"""One segment: a `.log` file of batches and its indexes, all named by the base offset.

The *active* segment is the last one and the only one that grows; its indexes are in memory, and
their files are written when it closes. A closed segment changes only by truncation, or the cleaner
replaces it as a whole; its indexes are loaded at their first use.

`cursors` maps base offsets to positions of batches that were recently appended or read, so that a
sequential reader needs no search.

No checksum covers an index. So an entry from a file is compared with its batch at its first use,
and an index that does not match its log is rebuilt.
"""

import logging
from collections.abc import Iterator
from itertools import chain
from zlib import crc32

from broker.log.index.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from broker.log.index.offset_index import MAX_RELATIVE_OFFSET, OffsetIndex
from broker.log.index.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from broker.log.index.time_index import TimeIndex
from broker.log.index.transaction_index import TransactionIndex
from broker.log.names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_path,
)
from broker.log.storage import File, FileRegion, Storage, read_file, remove_files
from broker.log.walk import BatchPosition, walk_headers, walk_intact
from broker.records.errors import CorruptBatch
from broker.records.header import NO_TIMESTAMP, BytesLike

_logger = logging.getLogger(__name__)

REMEMBERED_CURSORS = 64
UNKNOWN = -2
"""The `max_timestamp_ms` of a closed segment whose time index has not been read."""


class Segment:
    """Invariant: `size_bytes` is the end of the last whole batch, `next_offset` follows it."""

    __slots__ = (
        "_file",
        "_offset_index",
        "_storage",
        "_time_index",
        "_transaction_index",
        "_unindexed_bytes",
        "_unsynced_indexes",
        "base_offset",
        "created_ms",
        "cursors",
        "directory",
        "extension",
        "first_timestamp_ms",
        "is_inspected",
        "is_on_disk",
        "jitter_ms",
        "max_timestamp_ms",
        "max_timestamp_offset",
        "next_offset",
        "size_bytes",
        "synced_bytes",
        "transaction_index_crc",
    )

    def __init__(
        self,
        storage: Storage,
        directory: str,
        base_offset: int,
        *,
        created_ms: int = 0,
        extension: str = "",
    ) -> None:
        self._storage = storage
        self.directory = directory
        self.extension = extension
        """The extension of the file names while the cleaner writes the segment, otherwise empty."""
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size_bytes = 0
        self.synced_bytes = 0
        """The number of bytes that survive a power failure; `sync` raises it."""
        self.is_on_disk = False
        """True if `.log` exists; a partition's first file is created with the first record."""
        self.is_inspected = True
        """True if the end of `.log` was checked; see `inspection`."""
        self.created_ms = created_ms
        self.jitter_ms = 0
        self.first_timestamp_ms: int | None = None
        """The first batch's largest timestamp, the start of the segment's age for rolling."""
        self.max_timestamp_ms = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.cursors: dict[int, int] = {}
        self._file: File | None = None
        self._unindexed_bytes = 0
        self._unsynced_indexes: set[str] = set()
        self._offset_index: OffsetIndex | None = OffsetIndex()
        self._time_index: TimeIndex | None = TimeIndex()
        self._transaction_index: TransactionIndex | None = TransactionIndex()
        self.transaction_index_crc: int | None = None
        """The CRC of `.txnindex`; None if it does not exist or was not read."""

    def path(self, suffix: str) -> str:
        """Return the path of one of the files."""
        return segment_path(self.directory, self.base_offset, suffix) + self.extension

    @property
    def file(self) -> File:
        """The `.log` file, opened or created at its first use."""
        file = self._file
        if file is None:
            file = self._file = self._storage.open(
                self.path(LOG_SUFFIX), create=not self.is_on_disk
            )
            self.is_on_disk = True
        return file

    @property
    def offset_index(self) -> OffsetIndex:
        """The offset index, loaded if necessary; rebuilt if its file is invalid."""
        if self._offset_index is None:
            data = read_file(self._storage, self.path(INDEX_SUFFIX))
            if data is not None:
                self._offset_index = OffsetIndex.from_bytes(data, self.size_bytes)
            if self._offset_index is None:
                self._rebuild(INDEX_SUFFIX)
        assert self._offset_index is not None
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        """The time index, loaded if necessary; rebuilt if its file is invalid."""
        if self._time_index is None:
            data = read_file(self._storage, self.path(TIME_INDEX_SUFFIX))
            index = TimeIndex.from_bytes(data) if data is not None else None
            if index is None or not self._fits_to_the_end(index):
                self._rebuild(TIME_INDEX_SUFFIX)
            else:
                self._time_index = index
        assert self._time_index is not None
        return self._time_index

    @property
    def transaction_index(self) -> TransactionIndex:
        """The index of aborted transactions, loaded if necessary; raises CorruptBatch."""
        if self._transaction_index is None:
            data = read_file(self._storage, self.path(TRANSACTION_INDEX_SUFFIX)) or b""
            index = TransactionIndex.from_bytes(data, self.base_offset)
            if index is None:
                raise CorruptBatch(f"{self.path(TRANSACTION_INDEX_SUFFIX)} is damaged")
            self._transaction_index = index
        return self._transaction_index

    def append(self, batch: BatchPosition, index_interval_bytes: int, *parts: BytesLike) -> None:
        """Write one batch at the end; `batch` has the values for the indexes."""
        (self._file or self.file).write(self.size_bytes, *parts)
        self.note(batch, index_interval_bytes)

    def note(self, batch: BatchPosition, index_interval_bytes: int) -> None:
        """Add a batch that is in the file to the indexes."""
        base_offset, last_offset, position, size_bytes, max_timestamp_ms = batch
        if max_timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = max_timestamp_ms
            self.max_timestamp_offset = last_offset
        if self._unindexed_bytes > index_interval_bytes:
            self.offset_index.append(last_offset - self.base_offset, position)
            self.time_index.maybe_append(
                self.max_timestamp_ms, self.max_timestamp_offset - self.base_offset
            )
            self._unindexed_bytes = 0
        if self.first_timestamp_ms is None:
            self.first_timestamp_ms = max_timestamp_ms
        self._unindexed_bytes += size_bytes
        self.size_bytes = position + size_bytes
        self.next_offset = last_offset + 1
        cursors = self.cursors  # As `remember` does, which is a call.
        cursors[base_offset] = position
        if len(cursors) > REMEMBERED_CURSORS:
            cursors.pop(next(iter(cursors)), None)

    def remember(self, base_offset: int, position: int) -> None:
        """Keep the position of a batch for its next reader."""
        cursors = self.cursors
        cursors[base_offset] = position
        if len(cursors) > REMEMBERED_CURSORS:
            # Another thread may remove the same key at the same time.
            cursors.pop(next(iter(cursors)), None)

    def has_room_for(self, last_offset: int, index_limit_bytes: int) -> bool:
        """Return True if the relative offset fits into 32 bits and the indexes are not full."""
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return False
        # Every append calls this, so it accesses the loaded indexes without a call.
        offsets = self._offset_index or self.offset_index
        times = self._time_index or self.time_index
        room = index_limit_bytes - TIME_ENTRY_BYTES
        return (
            len(offsets.positions) * OFFSET_ENTRY_BYTES <= room
            and len(times.timestamps) * TIME_ENTRY_BYTES <= room
        )

    @property
    def largest_timestamp_ms(self) -> int:
        """The largest timestamp of any record, -1 if none has one."""
        if self.max_timestamp_ms == UNKNOWN:
            last = self.time_index.last() or (NO_TIMESTAMP, 0)
            self.max_timestamp_ms, relative_offset = last
            self.max_timestamp_offset = self.base_offset + relative_offset
        return self.max_timestamp_ms

    def position_of(self, offset: int) -> int:
        """Return the position of the first batch whose last offset is at or above `offset`."""
        if offset >= self.next_offset:
            return self.size_bytes
        position = self.cursors.get(offset)
        if position is not None:
            return position
        entry = self.offset_index.floor(offset - self.base_offset)
        for batch in self._walk_from(entry, 0):
            if batch.last_offset >= offset:
                return batch.position
        return self.size_bytes

    def _walk_from(
        self, entry: int, otherwise: int, end: int | None = None
    ) -> Iterator[BatchPosition]:
        """Yield the batches from an entry of the offset index on, if the entry matches its batch.

        If it does not match, or for entry -1, start at `otherwise`, the known start of a batch.
        """
        if entry < 0:
            return self.walk(otherwise, end)
        index = self._offset_index or self.offset_index
        position, is_compared = index.positions[entry], index.is_compared
        if is_compared is None or is_compared[entry]:
            return self.walk(position, end)
        try:
            batches = self.walk(position, end)
            first = next(batches)
            if first.last_offset - self.base_offset == index.relative_offsets[entry]:
                is_compared[entry] = True
                return chain((first,), batches)
        except (CorruptBatch, StopIteration):
            pass  # The entry is wrong: no batch starts here.
        self._rebuild(INDEX_SUFFIX)
        return self.walk(otherwise, end)

    def position_for_timestamp(self, timestamp_ms: int) -> int:
        """Return a position before which no record has this timestamp or a later one."""
        entry = self.time_index.floor(timestamp_ms)
        batch = self._batch_of(self.time_index, entry)
        if batch is not None:
            return batch.position
        if entry >= 0:
            self._rebuild(TIME_INDEX_SUFFIX)
        return 0

    def _fits_to_the_end(self, index: TimeIndex) -> bool:
        """Return True if the last entry matches a batch, or if there is neither entry nor batch."""
        last = len(index.timestamps) - 1
        return self._batch_of(index, last) is not None if last >= 0 else not self.size_bytes

    def _batch_of(self, index: TimeIndex, entry: int) -> BatchPosition | None:
        """Return the batch of a time index entry; None if the batch has another timestamp."""
        if entry < 0:
            return None
        relative_offset = index.relative_offsets[entry]
        try:
            for batch in self._walk_from(self.offset_index.floor(relative_offset), 0):
                if batch.last_offset >= self.base_offset + relative_offset:
                    return batch if batch.max_timestamp_ms == index.timestamps[entry] else None
        except CorruptBatch:
            pass  # A read of the damaged batch reports it.
        return None

    def find_end(self) -> tuple[int, int, str]:
        """Return the end of the last whole batch, its next offset, and the reason for the end."""
        position, next_offset, latest_ms, reason = 0, self.base_offset, NO_TIMESTAMP, ""
        try:
            for batch in self._walk_from(len(self.offset_index.positions) - 1, 0):
                position, next_offset = batch.position + batch.size_bytes, batch.last_offset + 1
                latest_ms = max(latest_ms, batch.max_timestamp_ms)
        except CorruptBatch as error:
            reason = str(error)
        if latest_ms > self.largest_timestamp_ms:
            self._rebuild(TIME_INDEX_SUFFIX)
        return position, next_offset, reason

    def walk(self, position: int = 0, end: int | None = None) -> Iterator[BatchPosition]:
        """Yield the batch headers from a position, which must be the start of a batch."""
        end = self.size_bytes if end is None else end
        if not 0 <= position <= end:
            raise CorruptBatch(f"no batch at byte {position} of {end}")
        return walk_headers(self._file or self.file, position, end) if end else iter(())

    def _note_all(self, batches: Iterator[BatchPosition], index_interval_bytes: int) -> None:
        """Add batches of the file to the indexes; raise CorruptBatch for invalid offsets."""
        for batch in batches:
            is_within = batch.last_offset - self.base_offset <= MAX_RELATIVE_OFFSET
            if batch.base_offset < self.next_offset or not is_within:
                raise CorruptBatch(
                    f"batch {batch.base_offset} at byte {batch.position} of segment "
                    f"{self.base_offset} comes after {self.next_offset - 1}"
                )
            self.note(batch, index_interval_bytes)

    def cut(self, start: int, max_bytes: int, limit: int, *, first_whole: bool) -> tuple[int, int]:
        """Return where a slice from `start` ends, after a batch, and its next offset (or -1)."""
        end = start + max_bytes
        if end >= limit:
            return limit, -1
        index = self._offset_index or self.offset_index
        entry = index.floor_of_position(end)
        is_nearer = entry >= 0 and index.positions[entry] > start
        walk = self._walk_from(entry, start, limit) if is_nearer else self.walk(start, limit)
        for batch in walk:
            batch_end = batch.position + batch.size_bytes
            if batch_end > end and not (first_whole and batch.position == start):
                self.remember(batch.base_offset, batch.position)
                return batch.position, batch.base_offset
            if batch_end >= end:
                return batch_end, -1
        return limit, -1

    def slice(self, start: int, end: int) -> FileRegion:
        """Return a region of the file."""
        return FileRegion(self.file, start, end - start)

    def close_indexes(self) -> None:
        """Write the index files, because the segment is complete or the log stops."""
        if not self.is_on_disk:
            return
        self.time_index.maybe_append(
            self.max_timestamp_ms, self.max_timestamp_offset - self.base_offset
        )
        self._write(INDEX_SUFFIX, self.offset_index.to_bytes())
        self._write(TIME_INDEX_SUFFIX, self.time_index.to_bytes())
        if self.transaction_index.entries:
            self.save_transaction_index()

    def save_transaction_index(self) -> None:
        """Write `.txnindex`, which exists only if it has an entry."""
        index = self.transaction_index
        if index.entries or self._storage.status(self.path(TRANSACTION_INDEX_SUFFIX)) is not None:
            self._write(TRANSACTION_INDEX_SUFFIX, data := index.to_bytes())
            self.transaction_index_crc = crc32(data) if data else None

    def _write(self, suffix: str, data: bytes) -> None:
        file = self._storage.open(self.path(suffix), create=True)
        file.write(0, data)
        file.truncate(len(data))
        self._unsynced_indexes.add(suffix)

    def _rebuild(self, suffix: str) -> None:
        _logger.warning("index does not match its log, rebuilt file=%s", self.path(suffix))
        self.rebuild_indexes()

    def rebuild_indexes(self, index_interval_bytes: int = 4096) -> None:
        """Rebuild the offset and time index from the batch headers, up to a damaged batch.

        A read of the damaged batch reports the damage.
        """
        end, next_offset = self.size_bytes, self.next_offset
        self.reset()
        try:
            self._note_all(self.walk(0, end), index_interval_bytes)
            self.close_indexes()
        except CorruptBatch as error:
            _logger.error("log is damaged file=%s reason=%s", self.path(LOG_SUFFIX), error)
        finally:
            self.size_bytes, self.next_offset = end, next_offset

    def reset(self) -> None:
        """Reset the state of the content; the file stays."""
        self._offset_index, self._time_index = OffsetIndex(), TimeIndex()
        self.cursors, self.size_bytes, self._unindexed_bytes = {}, 0, 0
        self.next_offset = self.max_timestamp_offset = self.base_offset
        self.max_timestamp_ms, self.first_timestamp_ms = NO_TIMESTAMP, None

    def describe_closed(self, size_bytes: int, next_offset: int) -> None:
        """Set the state of a closed segment on disk; its indexes are loaded at their first use."""
        self.is_on_disk = True
        self.is_inspected = False
        self.size_bytes = self.synced_bytes = size_bytes
        self.next_offset = next_offset
        self.max_timestamp_ms = UNKNOWN
        self.unload()

    def activate(self, index_interval_bytes: int) -> None:
        """Make a segment on disk the active one: read it from the last index entry to its end.

        Raise CorruptBatch if that part of the file is not as it was written.
        """
        if self._time_index is not None and self.max_timestamp_ms != UNKNOWN:
            return
        self.max_timestamp_ms = self.largest_timestamp_ms
        entry = len(self.offset_index.positions) - 1
        start, end = self.offset_index.positions[entry] if entry >= 0 else 0, self.size_bytes
        self._unindexed_bytes = 0
        self.first_timestamp_ms, self.next_offset = None, self.base_offset
        try:
            if start:
                self.first_timestamp_ms = next(self.walk()).max_timestamp_ms
            # The batch of the last entry already has its entry.
            self._note_all(walk_intact(self.file, start, end), index_interval_bytes)
        finally:
            self.size_bytes = end
        self.is_inspected = True

    def drop_transaction_index(self) -> None:
        """Clear the index of aborted transactions, and delete its file."""
        self._transaction_index, self.transaction_index_crc = TransactionIndex(), None
        remove_files(self._storage, [self.path(TRANSACTION_INDEX_SUFFIX)])

    def start_of(self, offset: int) -> int:
        """Return the base offset of the first batch whose last offset is at least `offset`."""
        for batch in self.walk(self.position_of(offset)):
            return batch.base_offset
        return self.next_offset

    def unload(self) -> None:
        """Release the file and the indexes of a closed segment; the next use loads them again."""
        self._file = None
        self._offset_index = self._time_index = self._transaction_index = None

    def truncate(self, offset: int, index_interval_bytes: int) -> int:
        """Remove everything from an offset on; return the number of removed bytes."""
        position, old_size = self.position_of(offset), self.size_bytes
        if position >= old_size:
            return 0
        self.file.truncate(position)
        self.file.sync()  # What is removed must not come back among what replaces it.
        self.synced_bytes = self.size_bytes = position
        self._forget_after(position, index_interval_bytes)
        if self.transaction_index.truncate(offset):
            self.save_transaction_index()
        return old_size - position

    def _forget_after(self, position: int, index_interval_bytes: int) -> None:
        """Read on from the last index entry before a position, whose batch has its entry."""
        first_ms, offsets, times = self.first_timestamp_ms, self.offset_index, self.time_index
        offset, start = offsets.rewind(position) if first_ms is not None else (-1, 0)
        self.reset()
        if start:
            self._offset_index, self._time_index, self.first_timestamp_ms = offsets, times, first_ms
            self.max_timestamp_ms, relative_offset = times.rewind(offset)
            self.max_timestamp_offset = self.base_offset + relative_offset
        self._note_all(self.walk(start, position), index_interval_bytes)

    def sync(self) -> None:
        """Make the records survive a power failure; this is safe on another thread."""
        size_bytes = self.size_bytes
        if self.is_on_disk and size_bytes > self.synced_bytes:
            self.file.sync()
            self.synced_bytes = size_bytes
        # Indexes below the recovery point are not rebuilt, so they must be durable too.
        while self._unsynced_indexes:
            suffix = min(self._unsynced_indexes)
            self._sync_index(suffix)
            self._unsynced_indexes.discard(suffix)

    def _sync_index(self, suffix: str) -> None:
        try:
            file = self._storage.open(self.path(suffix))
        except FileNotFoundError:
            return  # The segment was deleted or replaced meanwhile.
        file.sync()

    @property
    def needs_sync(self) -> bool:
        """True if a power failure could lose data."""
        return self.synced_bytes < self.size_bytes or bool(self._unsynced_indexes)

    def note_synced(self) -> None:
        """Note that the whole file system has been synced."""
        self.synced_bytes = self.size_bytes
        self._unsynced_indexes.clear()

    def rename(self, extension: str) -> None:
        """Add an extension such as `.deleted` to the names of all existing files."""
        for suffix in SUFFIXES:
            path = self.path(suffix)
            if self._storage.status(path) is not None:
                self._storage.rename(path, path + extension)

    def remove(self, extension: str = "") -> None:
        """Delete the files; a reader that holds a region of them can finish."""
        remove_files(self._storage, [self.path(suffix) + extension for suffix in SUFFIXES])

    def move_to(self, directory: str) -> None:
        """Use another directory, after a rename; open files stay open."""
        self.directory = directory
