"""Reads ranges of a topic as rows. Batches are decoded in a thread, so that nobody else waits."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from common.kafka.errors import ErrorCode, KafkaError
from console.reading.partitions import (
    EARLIEST,
    LATEST,
    PAGE_LIMITS,
    Fetched,
    ReadLimits,
    TopicPartitions,
)
from console.reading.schemas import SchemaShelf
from console.records.batches import (
    ABORTED,
    MARKER,
    MAX_RECORD_BYTES,
    MAX_RECORDS,
    Decoded,
    ReadRange,
    records_of,
)
from console.records.decoding import MAX_DECODED_BYTES, Schemas, row_of, schema_ids
from console.records.filters import Filter
from console.records.masking import TopicMask
from console.records.merging import Window
from console.records.rows import Row

_STALLS: Final = 3
_PAUSE_SECONDS: Final = 0.1


class Chunk(NamedTuple):
    """What was read of one partition at once."""

    rows: list[Row]
    next_offset: int
    record_count: int = 0
    too_large_count: int = 0
    """Records that a search did not look into, because a value is too large."""


@dataclass(frozen=True)
class Wish:
    """Which records are wanted, and how they are shown."""

    all_states: bool = False
    """Records of open and of aborted transactions too, and the markers."""
    mask: TopicMask | None = None
    search: Filter | None = None
    limit_bytes: int = MAX_DECODED_BYTES
    is_whole: bool = False
    """Long texts are not cut."""


class RowReader:
    """Reads one topic; methods raise KafkaError or ConnectionFailed."""

    def __init__(self, partitions: TopicPartitions, shelf: SchemaShelf, wish: Wish) -> None:
        self.partitions = partitions
        self._shelf = shelf
        self._wish = wish
        self._stable: dict[int, int] = {}

    async def open(self, only: int | None = None) -> dict[int, Window]:
        """Return the first offset and the end of each partition, or of one.

        The end is where readers of committed records stop, with `all_states` the high watermark.
        A partition without a leader is left out.
        """
        await self.partitions.open()
        numbers = self.partitions.numbers if only is None else [only]
        if only is not None and only not in self.partitions.numbers:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"{self.partitions.topic} has no partition {only}.",
            )
        starts = await self.partitions.offsets_at(EARLIEST, numbers)
        self._stable = await self.partitions.offsets_at(LATEST, numbers, is_stable=True)
        ends = self._stable
        if self._wish.all_states:
            ends = await self.partitions.offsets_at(LATEST, numbers)
        return {
            each: Window(starts[each], max(starts[each], ends[each]))
            for each in starts
            if each in ends
        }

    async def read(self, windows: Mapping[int, Window]) -> dict[int, list[Row]]:
        """Return all rows of some windows; those whose end cannot be reached have fewer."""
        left = dict(windows)
        rows: dict[int, list[Row]] = {each: [] for each in windows}
        stalls = 0
        while left and stalls < _STALLS:
            has_advanced = False
            for partition, chunk in (await self.read_once(left)).items():
                rows[partition] += chunk.rows
                has_advanced |= chunk.next_offset > left[partition].start
                left[partition] = Window(chunk.next_offset, left[partition].end)
            left = {each: window for each, window in left.items() if window.start < window.end}
            if not has_advanced:
                # A quota may hold a leader's answer back; a compacted end may have no records.
                stalls += 1
                await asyncio.sleep(_PAUSE_SECONDS)
        return rows

    async def read_once(
        self, windows: Mapping[int, Window], limits: ReadLimits = PAGE_LIMITS
    ) -> dict[int, Chunk]:
        """Fetch once from each leader; a chunk may end before its window does."""
        decided = {p: w.start for p, w in windows.items() if w.start < self._stable.get(p, 0)}
        open_ones = {p: w.start for p, w in windows.items() if p not in decided}
        fetched: list[Fetched] = []
        if decided:
            fetched += await self.partitions.fetch(decided, limits, all_states=False)
        if open_ones:
            all_states = self._wish.all_states
            fetched += await self.partitions.fetch(open_ones, limits, all_states=all_states)
        found: dict[int, Chunk] = {}
        to_decode = []
        for each in fetched:
            window = windows[each.partition]
            if each.error is not None:
                found[each.partition] = self._after_error(each, window)
            elif each.records:
                to_decode.append((each, window))
        if to_decode:
            found.update(await self._decoded(to_decode))
        return found

    def _after_error(self, fetched: Fetched, window: Window) -> Chunk:
        assert fetched.error is not None
        if fetched.error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
            raise KafkaError(
                fetched.error.code, f"{self.partitions.topic}-{fetched.partition}: {fetched.error}"
            )
        # Retention has deleted what was to be read, or a new leader has a shorter log.
        is_deleted = fetched.log_start_offset > window.start
        return Chunk([], min(fetched.log_start_offset, window.end) if is_deleted else window.end)

    async def _decoded(self, fetched: Sequence[tuple[Fetched, Window]]) -> dict[int, Chunk]:
        decoded = await asyncio.to_thread(_records, fetched)
        if self._shelf.has_registry:
            ids = await asyncio.to_thread(_ids_in, decoded)
            if unknown := self._shelf.unknown(ids):
                await self._shelf.learn(unknown)
        return await asyncio.to_thread(_chunks, decoded, self._wish, self._shelf.known)


_DecodedParts = dict[int, tuple[Decoded, Window]]


def _records(fetched: Sequence[tuple[Fetched, Window]]) -> _DecodedParts:
    return {
        each.partition: (
            records_of(
                each.records,
                ReadRange(
                    each.partition,
                    window.start,
                    window.end,
                    each.last_stable_offset,
                    each.aborted,
                    max(1, MAX_RECORDS // len(fetched)),
                    MAX_RECORD_BYTES // len(fetched),
                ),
            ),
            window,
        )
        for each, window in fetched
    }


def _ids_in(decoded: _DecodedParts) -> set[int]:
    return set().union(*(schema_ids(each.records) for each, _ in decoded.values()))


def _chunks(decoded: _DecodedParts, wish: Wish, schemas: Schemas) -> dict[int, Chunk]:
    found = {}
    for partition, ((records, next_offset), window) in decoded.items():
        rows = []
        too_large = 0
        for record in records:
            if not wish.all_states and record.state in (ABORTED, MARKER):
                continue
            row = row_of(record, schemas, wish.mask, wish.limit_bytes)
            too_large += row.value.kind == "large"
            if wish.search is None or wish.search.matches(row):
                rows.append(row if wish.is_whole else row.cut())
        found[partition] = Chunk(rows, min(next_offset, window.end), len(records), too_large)
    return found
