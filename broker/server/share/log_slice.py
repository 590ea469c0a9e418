"""The batches of a read of the log, and the part of it that a member is sent.

Records are sent as whole batches, as the log has them: a member skips those that it did not
acquire. Only headers are read, and, for a group that reads committed records only, the markers of
transactions.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from broker.log.index.transaction_index import AbortedTransaction
from broker.log.storage import FileRegion
from broker.log.walk import BatchPosition, walk_headers
from broker.records.batch import batch_at
from broker.records.control import ControlType, control_type
from broker.records.header import HEADER_BYTES, read_header
from broker.share.acquisition import Acquired, LogBatch

Chunk = bytes | FileRegion
NO_RECORDS = b""


class _Readable(Protocol):
    def read(self, position: int, length: int) -> bytes: ...


class _Bytes:
    """Bytes that are read like a file."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, position: int, length: int) -> bytes:
        return self._data[position : position + length]


class LogSlice(NamedTuple):
    """The first batches of a read, with their places."""

    part: Chunk
    batches: Sequence[LogBatch]
    places: Sequence[BatchPosition]

    def records(self, acquired: Sequence[Acquired]) -> Chunk:
        """Return the whole batches that have acquired records."""
        if not acquired:
            return NO_RECORDS
        first, end_offset = acquired[0].start_offset, acquired[-1].end_offset
        wanted = [
            place
            for place in self.places
            if place.last_offset >= first and place.base_offset < end_offset
        ]
        if not wanted:
            return NO_RECORDS
        start, end = wanted[0].position, wanted[-1].position + wanted[-1].size_bytes
        if isinstance(self.part, FileRegion):
            return FileRegion(self.part.file, start, end - start)
        return self.part[start:end]


NOTHING_READ = LogSlice(NO_RECORDS, (), ())


def slice_of(part: Chunk, end_offset: int, aborted: Sequence[AbortedTransaction] = ()) -> LogSlice:
    """Return the batches of a read up to the one with the offset before `end_offset`.

    Raise CorruptBatch.
    """
    if isinstance(part, FileRegion):
        file: _Readable = part.file
        start, end = part.position, part.position + part.length
    else:
        file, start, end = _Bytes(part), 0, len(part)
    places: list[BatchPosition] = []
    for place in walk_headers(file, start, end):  # type: ignore[arg-type]  # it only reads
        places.append(place)
        if place.last_offset + 1 >= end_offset:
            break
    bad = _aborted(file, places, aborted) if aborted else frozenset()
    batches = [
        LogBatch(place.base_offset, place.last_offset + 1, place.base_offset in bad)
        for place in places
    ]
    return LogSlice(part, batches, places)


def _aborted(
    file: _Readable, places: Iterable[BatchPosition], aborted: Sequence[AbortedTransaction]
) -> frozenset[int]:
    """Return the base offsets of the batches of aborted transactions, as a consumer finds them."""
    left = sorted(aborted, key=lambda found: found.first_offset, reverse=True)
    producers: set[int] = set()
    bad: set[int] = set()
    for place in places:
        header = read_header(file.read(place.position, HEADER_BYTES))
        while left and left[-1].first_offset <= place.last_offset:
            producers.add(left.pop().producer_id)
        if not header.is_transactional or header.producer_id not in producers:
            continue
        if not header.is_control:
            bad.add(place.base_offset)
        elif _is_abort(file, place):
            producers.discard(header.producer_id)
    return frozenset(bad)


def _is_abort(file: _Readable, place: BatchPosition) -> bool:
    batch = batch_at(file.read(place.position, place.size_bytes))
    record = None if batch is None else next(iter(batch.records()), None)
    return record is not None and control_type(record.key) == ControlType.ABORT
