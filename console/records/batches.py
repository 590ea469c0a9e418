"""Record batches as single records, with the state of the transaction that each belongs to. Pure.

aiokafka decodes a batch. A batch that it cannot decode becomes one record that has the batch's
bytes and the reason, so that nothing is hidden. Control records are the markers by which
transactions end (KIP-98): their key has a version and a type in two bytes each.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from struct import Struct, error
from typing import Any, Final, NamedTuple

from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from cramjam import DecompressionError

from common.kafka.batches import MemoryRecords

COMMITTED, ABORTED, OPEN, MARKER = "committed", "aborted", "open", "marker"
"""The states of a record of a transaction; a record outside of transactions has none."""
_CONTROL_KEY: Final = Struct(">hh")
_MARKERS: Final = {0: "ABORT", 1: "COMMIT"}
_UNREADABLE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    CorruptRecordException,
    DecompressionError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SystemError,
    TypeError,
    UnsupportedCodecError,
    ValueError,
    error,
)
"""aiokafka and the libraries of compression raise these for bytes that a stranger wrote."""
_NO_PRODUCER: Final = -1
_SHOWN_CHARACTERS: Final = 200

Headers = Sequence[tuple[str, bytes | None]]


class RawRecord(NamedTuple):
    """One record as it lies in its partition."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    state: str = ""
    producer_id: int = _NO_PRODUCER
    why_unreadable: str = ""
    """Why its batch cannot be decoded; the value has the batch's bytes."""


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted: its producer, and its first offset in the partition."""

    producer_id: int
    first_offset: int


@dataclass(slots=True)
class ReadRange:
    """What is wanted of a partition: offsets from `start` to before `end`."""

    partition: int
    start: int
    end: int
    last_stable_offset: int
    """From here on it is not decided which transactions are committed."""
    aborted: Sequence[AbortedTransaction] = ()


class Decoded(NamedTuple):
    """The records of a range, and the offset where reading goes on."""

    records: list[RawRecord]
    next_offset: int


def records_of(data: bytes, wanted: ReadRange) -> Decoded:
    """Return the records of an answer to Fetch that lie in a range, in the order of offsets."""
    records: list[RawRecord] = []
    next_offset = wanted.start
    transactions = _Transactions(wanted)
    for batch in _batches(data):
        begin = batch.base_offset if hasattr(batch, "base_offset") else next_offset
        state = transactions.state_of(batch, begin)
        try:
            if not batch.validate_crc():
                raise ValueError("its checksum is wrong")
            found = [_raw(wanted.partition, each, batch, state) for each in batch]
        except _UNREADABLE as failure:
            found = [_unreadable(wanted.partition, begin, batch, data, failure)]
        transactions.learn(batch, found)
        records += [each for each in found if wanted.start <= each.offset < wanted.end]
        next_offset = max(next_offset, batch.next_offset)
    return Decoded(records, next_offset)


def _batches(data: bytes) -> Iterator[Any]:
    """Yield the whole batches; the last one of an answer may be cut off."""
    try:
        batches = MemoryRecords(data)
        while batches.has_next():
            yield batches.next_batch()
    except _UNREADABLE:
        # What follows cannot be told apart: the reader sees that it got no further.
        return


def _raw(partition: int, record: Any, batch: Any, state: str) -> RawRecord:
    producer_id = batch.producer_id
    return RawRecord(
        partition,
        record.offset,
        record.timestamp if record.timestamp is not None else -1,
        record.key,
        record.value,
        tuple(record.headers or ()),
        state,
        _NO_PRODUCER if producer_id is None else producer_id,
    )


def _unreadable(
    partition: int, offset: int, batch: Any, data: bytes, failure: Exception
) -> RawRecord:
    why = f"its batch cannot be decoded: {failure!r}"[:_SHOWN_CHARACTERS]
    timestamp = getattr(batch, "max_timestamp", -1)
    value = _bytes_at(data, offset)
    return RawRecord(partition, offset, timestamp, None, value, why_unreadable=why)


def _bytes_at(data: bytes, base_offset: int) -> bytes:
    """Return the bytes of the batch that begins at an offset."""
    at = 0
    while at + 12 <= len(data):
        size = 12 + int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        if int.from_bytes(data[at : at + 8], "big", signed=True) == base_offset:
            return data[at : at + size]
        at += max(size, 12)
    return b""


class _Transactions:
    """Which producers have an aborted transaction at the place that is read (KIP-98)."""

    def __init__(self, wanted: ReadRange) -> None:
        self._last_stable_offset = wanted.last_stable_offset
        self._aborted = sorted(wanted.aborted, key=_first_offset, reverse=True)
        self._producers: set[int] = set()

    def state_of(self, batch: Any, base_offset: int) -> str:
        """Return the state of a batch's records."""
        while self._aborted and self._aborted[-1].first_offset < batch.next_offset:
            self._producers.add(self._aborted.pop().producer_id)
        if batch.is_control_batch:
            return MARKER
        if not batch.is_transactional:
            return ""
        if base_offset >= self._last_stable_offset:
            return OPEN
        return ABORTED if batch.producer_id in self._producers else COMMITTED

    def learn(self, batch: Any, records: Iterable[RawRecord]) -> None:
        """Note a marker, after which the producer's next records belong to another transaction."""
        if batch.is_control_batch and any(marker_of(each) == "ABORT" for each in records):
            self._producers.discard(batch.producer_id)


def _first_offset(transaction: AbortedTransaction) -> int:
    return transaction.first_offset


def marker_of(record: RawRecord) -> str:
    """Return COMMIT or ABORT for a control record of a transaction, another word for others."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        return "unknown marker"
    number = _CONTROL_KEY.unpack_from(record.key)[1]
    return _MARKERS.get(number, f"control record of type {number}")
