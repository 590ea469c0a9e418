"""One round of cleaning of one log, which can run on another thread.

    run = CleaningRun(dirty_log, memory_bytes, timestamp_ms, limits)    # owner's thread
    run.build_offset_map()                                              # any thread
    while (replacement := run.clean_next_group()) is not None:          # any thread
        if not replace_segments(log, replacement, timestamp_ms):        # owner's thread
            break
    finish_round(log, run)                                              # owner's thread

The run works on the closed segments of its start, which do not change while the log is read and
appended to. If retention, a truncation or a deletion removes one of them, the round ends without
its replacement (`CleaningAborted`, or False from `replace_segments`).
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from broker.log.cleaner.filter import BatchFilter
from broker.log.cleaner.offset_map import OffsetMap
from broker.log.cleaner.schedule import DirtyLog
from broker.log.cleaner.swap import CLEANED_EXTENSION, begin_swap, complete_swap
from broker.log.cleaner.transactions import CleanedTransactions
from broker.log.index.offset_index import MAX_RELATIVE_OFFSET
from broker.log.names import LOG_SUFFIX, SUFFIXES
from broker.log.partition_log import PartitionLog
from broker.log.read import aborted_between
from broker.log.segment import Segment
from broker.log.storage import remove_files
from broker.log.walk import place_of, walk_batches
from broker.records.batch import RecordBatch
from broker.records.errors import CorruptBatch
from broker.records.header import read_header
from broker.records.record import scan_records

_logger = logging.getLogger(__name__)


class CleaningAborted(Exception):  # noqa: N818 - an outcome, not a failure
    """The round was stopped, or one of its segments was removed."""


@dataclass(frozen=True, slots=True)
class CleaningLimits:
    """The limits of a round; the callbacks run on the thread of the round."""

    memory_bytes: int = 128 * 1024 * 1024
    throttle: Callable[[int], None] = lambda size_bytes: None
    """Called with the bytes read or written; sleeps above `log.cleaner.io.max.bytes.per.second`."""
    should_stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True, slots=True)
class Source:
    """A segment in its state at the start of the round."""

    segment: Segment
    base_offset: int
    next_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Replacement:
    """A cleaned segment, written and synced, and the segments that it replaces."""

    cleaned: Segment
    sources: list[Source]


class CleaningRun:
    """One round of one log. Once the map is built, `end_offset` is where the next round starts."""

    def __init__(self, dirty: DirtyLog, timestamp_ms: int, limits: CleaningLimits) -> None:
        log = self._log = dirty.log
        self._storage = log.place.storage
        self._directory = log.directory
        self._config = log.config
        self._limits = limits
        self._timestamp_ms = timestamp_ms
        self._first_dirty_offset = dirty.first_dirty_offset
        self._sources = [
            Source(segment, segment.base_offset, segment.next_offset, segment.size_bytes)
            for segment in log.segments
            if segment is not log.segments.active and segment.next_offset <= dirty.end_offset
        ]
        self._aborted = aborted_between(log, log.segments.first.base_offset, dirty.end_offset)
        self.offset_map = OffsetMap(limits.memory_bytes)
        self.end_offset = dirty.end_offset
        self._filter = BatchFilter(
            self.offset_map,
            timestamp_ms,
            log.config.delete_retention_ms,
            log.producers.last_data_offsets(),
        )
        self._filter.transactions.add_aborted(self._aborted)
        self._groups: list[list[Source]] = []
        self.bytes_read = 0
        self.bytes_written = 0

    def build_offset_map(self) -> None:
        """Map the keys of the dirty part, as many as fit into the memory; raise CleaningAborted."""
        with self._giving_up_on_damage():
            self._build_offset_map()

    @contextmanager
    def _giving_up_on_damage(self) -> Iterator[None]:
        """Abort the round, and exclude the log from cleaning, if a batch cannot be read."""
        try:
            yield
        except CorruptBatch as error:
            self._log.is_uncleanable = True
            name = self._log.topic_partition
            _logger.error("log is left uncleaned partition=%s reason=%s", name, error)
            raise CleaningAborted(str(error)) from error

    def _build_offset_map(self) -> None:
        # A record that removes an older one must not be lost in a power failure.
        for source in self._sources:
            source.segment.sync()
        self._storage.sync_directory(self._directory)
        transactions = CleanedTransactions()
        transactions.add_aborted(
            [x for x in self._aborted if x.last_offset >= self._first_dirty_offset]
        )
        for source in self._sources:
            if source.next_offset <= self._first_dirty_offset:
                continue
            if not self._map_segment(source, transactions):
                break
            self.offset_map.latest_offset = source.next_offset - 1
        self.end_offset = self.offset_map.latest_offset + 1
        self._groups = self._group_sources()

    def _map_segment(self, source: Source, transactions: CleanedTransactions) -> bool:
        """Put one segment's keys into the map; return False if the map is full."""
        offset_map, first = self.offset_map, self._first_dirty_offset
        for batch in self._batches(source):
            if batch.last_offset < first:
                continue
            header = batch.header
            is_data = not transactions.can_discard(batch) and not header.is_control
            if is_data and header.record_count:
                base_offset = batch.base_offset
                for record in scan_records(bytes(batch.payload()), header.record_count):
                    offset = base_offset + record.offset_delta
                    if record.key is None or offset < first:
                        continue
                    if not offset_map.put(record.key, offset):
                        return False
            offset_map.latest_offset = batch.last_offset
        return True

    def _batches(self, source: Source) -> Iterator[RecordBatch]:
        try:
            file = self._storage.open(f"{self._directory}/{source.base_offset:020d}{LOG_SUFFIX}")
        except FileNotFoundError as error:
            raise CleaningAborted(f"segment {source.base_offset} is gone") from error
        end = 0
        for position, batch in walk_batches(file, 0, source.size_bytes):
            if self._limits.should_stop():
                raise CleaningAborted("stopped")
            if not (
                batch.has_valid_crc
                and source.base_offset
                <= batch.base_offset
                <= batch.last_offset
                < source.next_offset
            ):
                raise CorruptBatch(f"batch {batch.base_offset} of segment {source.base_offset}")
            self._limits.throttle(batch.header.size_bytes)
            self.bytes_read += batch.header.size_bytes
            end = position + batch.header.size_bytes
            yield batch
        if end != source.size_bytes:
            raise CorruptBatch(f"segment {source.base_offset} cannot be read from byte {end} on")

    def _group_sources(self) -> list[list[Source]]:
        """Group neighbours whose records fit into one segment, so that segments do not get tiny."""
        groups: list[list[Source]] = []
        size_bytes = 0
        for source in self._sources:
            if source.base_offset >= self.end_offset:
                break
            fits = (
                groups
                and size_bytes + source.size_bytes <= self._config.segment_limit_bytes
                and source.next_offset - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
            )
            if fits:
                groups[-1].append(source)
                size_bytes += source.size_bytes
            else:
                groups.append([source])
                size_bytes = source.size_bytes
        return groups

    def clean_next_group(self) -> Replacement | None:
        """Write and return the next cleaned segment; None when done. Raise CleaningAborted."""
        if not self._groups:
            return None
        with self._giving_up_on_damage():
            return self._clean_group(self._groups.pop(0))

    def _clean_group(self, sources: list[Source]) -> Replacement:
        cleaned = Segment(
            self._storage,
            self._directory,
            sources[0].base_offset,
            created_ms=self._timestamp_ms,
            extension=CLEANED_EXTENSION,
        )
        remove_files(self._storage, [cleaned.path(suffix) for suffix in SUFFIXES])
        cleaned.file.truncate(0)
        self._filter.transactions.retained = []
        self._filter.end_offset = sources[-1].next_offset
        for source in sources:
            for batch in self._batches(source):
                result = self._filter.filter(batch)
                if result is not None:
                    self._write(cleaned, result)
        cleaned.transaction_index.entries = self._filter.transactions.retained
        cleaned.close_indexes()
        cleaned.file.sync()
        cleaned.sync()
        return Replacement(cleaned, sources)

    def _write(self, cleaned: Segment, data: bytes | memoryview) -> None:
        batch = RecordBatch(read_header(data), memoryview(data))
        where = place_of(batch, cleaned.size_bytes)
        cleaned.append(where, self._config.index_interval_bytes, data)
        self._limits.throttle(where.size_bytes)
        self.bytes_written += where.size_bytes


def replace_segments(log: PartitionLog, replacement: Replacement, timestamp_ms: int) -> bool:
    """Swap a cleaned segment in; return False, with nothing changed, if its sources changed."""
    storage, cleaned = log.place.storage, replacement.cleaned
    sources, base_offset = replacement.sources, replacement.cleaned.base_offset
    present = {id(segment) for segment in log.segments}
    is_unchanged = all(
        id(source.segment) in present and source.segment.size_bytes == source.size_bytes
        for source in sources
    )
    if not is_unchanged or log.directory != cleaned.directory:
        remove_files(storage, [cleaned.path(suffix) for suffix in SUFFIXES])
        return False
    begin_swap(storage, log.directory, base_offset)
    for source in sources:
        log.discard_segment(source.segment, timestamp_ms)
        if source.base_offset > base_offset:
            log.producers.drop_snapshot(source.base_offset)
    complete_swap(storage, log.directory, base_offset)
    cleaned.extension = ""
    cleaned.next_offset = sources[-1].next_offset
    cleaned.unload()
    log.segments.add(cleaned)
    log.save_index_sums()
    return True


def finish_round(log: PartitionLog, run: CleaningRun) -> None:
    """Set the log's first dirty offset to the end of the round."""
    log.first_dirty_offset = run.end_offset


def clean(dirty: DirtyLog, timestamp_ms: int, limits: CleaningLimits) -> CleaningRun:
    """Run a whole round on the owner's thread, for tests and tools."""
    run = CleaningRun(dirty, timestamp_ms, limits)
    run.build_offset_map()
    while (replacement := run.clean_next_group()) is not None:
        if not replace_segments(dirty.log, replacement, timestamp_ms):
            return run
    finish_round(dirty.log, run)
    return run
