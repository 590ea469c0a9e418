"""Record batches as single records, with the state of the transaction that each belongs to. Pure.

A batch that cannot be decoded, or unpacks to more than is allowed, becomes one record that has the
batch's bytes and the reason, so that nothing is hidden. Control records are the markers by which
transactions end (KIP-98): their key has a version and a type in two bytes each.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final, NamedTuple

from common.kafka.batches import UNREADABLE, opened, packed, pieces

MAX_UNPACKED_BYTES: Final = 64 << 20
"""Of one batch."""
MAX_RECORDS: Final = 10_000
MAX_RECORD_BYTES: Final = 16 << 20
"""Decoded at once, of all partitions; reading goes on behind the last one."""
COMMITTED, ABORTED, OPEN, MARKER = "committed", "aborted", "open", "marker"
"""The states of a record of a transaction; a record outside of transactions has none."""
_CONTROL_KEY: Final = Struct(">hh")
_MARKERS: Final = {0: "ABORT", 1: "COMMIT"}
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
    max_records: int = MAX_RECORDS
    max_bytes: int = MAX_RECORD_BYTES
    """Of the keys and values; a record that is larger is alone."""

    def has(self, record: Any) -> bool:
        """Whether a record lies in the range."""
        return bool(self.start <= record.offset < self.end)


class Decoded(NamedTuple):
    """The records of a range, and the offset where reading goes on."""

    records: list[RawRecord]
    next_offset: int


def records_of(data: bytes, wanted: ReadRange) -> Decoded:
    """Return the records of an answer to Fetch that lie in a range, in the order of offsets."""
    records: list[RawRecord] = []
    found: list[RawRecord]
    next_offset = wanted.start
    left_bytes = wanted.max_bytes
    transactions = _Transactions(wanted)
    for piece in pieces(data):
        try:
            head = packed(piece)
        except UNREADABLE as failure:
            found = [_unreadable(wanted, piece, failure)]
            records += filter(wanted.has, found)
            next_offset = max(next_offset, found[0].offset + 1)
            continue
        state = transactions.state_of(head)
        found = []
        is_full = False
        try:
            for record in opened(piece, MAX_UNPACKED_BYTES):
                if not wanted.has(record):
                    continue
                left_bytes -= len(record.key or b"") + len(record.value or b"")
                is_full = bool(records or found) and (
                    left_bytes < 0 or len(records) + len(found) >= wanted.max_records
                )
                if is_full:
                    break
                found.append(_raw(wanted.partition, record, head, state))
        except UNREADABLE as failure:
            found = [_unreadable(wanted, piece, failure, head.max_timestamp)]
            is_full = False
        records += filter(wanted.has, found)
        if is_full:
            return Decoded(records, records[-1].offset + 1)
        transactions.learn(head, found)
        next_offset = max(next_offset, head.next_offset)
    return Decoded(records, next_offset)


def _raw(partition: int, record: Any, head: Any, state: str) -> RawRecord:
    producer_id = head.producer_id
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
    wanted: ReadRange, piece: bytes, failure: Exception, timestamp_ms: int = -1
) -> RawRecord:
    why = f"its batch cannot be decoded: {str(failure) or repr(failure)}"[:_SHOWN_CHARACTERS]
    offset = int.from_bytes(piece[:8], "big", signed=True)
    return RawRecord(wanted.partition, offset, timestamp_ms, None, piece, why_unreadable=why)


class _Transactions:
    """Which producers have an aborted transaction at the place that is read (KIP-98)."""

    def __init__(self, wanted: ReadRange) -> None:
        self._last_stable_offset = wanted.last_stable_offset
        self._aborted = sorted(wanted.aborted, key=_first_offset, reverse=True)
        self._producers: set[int] = set()

    def state_of(self, batch: Any) -> str:
        """Return the state of a batch's records."""
        while self._aborted and self._aborted[-1].first_offset < batch.next_offset:
            self._producers.add(self._aborted.pop().producer_id)
        if batch.is_control_batch:
            return MARKER
        if not batch.is_transactional:
            return ""
        if batch.base_offset >= self._last_stable_offset:
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
