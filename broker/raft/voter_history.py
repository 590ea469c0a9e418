"""The voter sets and the levels of `kraft.version` in a node's log, by offset (KIP-853).

The newest entry counts as soon as it is in the log, committed or not: a leader that counted by the
older one could commit the change with a majority that another leader does not know of. Truncation
takes an entry back. What a snapshot contains has the offset of the last record that the snapshot
replaces; the voters that a node was formatted with have the offset -1, as have the static voters of
the configuration.

Invariants: `end_offset` is the log's end offset after each input; the offsets of the entries
ascend; at least one entry lies below the log's start.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from broker.raft.log import RaftLog
from broker.raft.voter_set import KRAFT_VERSIONS, VoterSet, voters_of_record
from broker.records.batch import RecordBatch, split_batches
from broker.records.control import ControlType, control_type
from broker.records.errors import CorruptBatch
from broker.records.header import BytesLike
from common.kafka.protocol.records.quorum import KRaftVersionRecord, VotersRecord
from common.kafka.protocol.structs import decode_struct
from common.kafka.protocol.wire import DecodeError

T = TypeVar("T")

BEFORE_THE_LOG = -1
READ_BYTES = 1024 * 1024


class VoterEntry(NamedTuple):
    """A record of the log: a new voter set, or a new level of `kraft.version`."""

    offset: int
    value: VoterSet | int


class _ByOffset(Generic[T]):
    """Values by the offset of the record that set them."""

    def __init__(self, first: T) -> None:
        self._entries = [(BEFORE_THE_LOG, first)]

    def add(self, offset: int, value: T) -> None:
        self.truncate_to(offset)
        self._entries.append((offset, value))

    def last(self) -> tuple[int, T]:
        return self._entries[-1]

    def before(self, offset: int) -> T:
        """Return the value that counts when the log ends at `offset`."""
        return next(value for at, value in reversed(self._entries) if at < offset or at < 0)

    def since(self, offset: int) -> list[T]:
        """Return the value that counts when the log ends at `offset`, and all later ones."""
        return [
            self.before(offset),
            *(value for at, value in self._entries if at >= max(offset, 0)),
        ]

    def truncate_to(self, offset: int) -> None:
        while self._entries[-1][0] >= max(offset, 0):
            self._entries.pop()

    def forget_before(self, offset: int) -> None:
        """Drop the entries that an entry below `offset` replaces."""
        while len(self._entries) > 1 and self._entries[1][0] < offset:
            del self._entries[0]


class VoterHistory:
    """The voter sets of one log. `static` are the configured voters, perhaps none."""

    def __init__(self, static: VoterSet, log: RaftLog) -> None:
        self._static = static
        self._log = log
        self._voters = _ByOffset(static)
        self._versions = _ByOffset(0)
        self.end_offset = 0
        self.read_snapshot()

    @property
    def voters(self) -> VoterSet:
        """The newest voter set in the log, committed or not."""
        return self._voters.last()[1]

    @property
    def offset(self) -> int:
        """The offset of that voter set; -1 if it is no record of the log."""
        return self._voters.last()[0]

    @property
    def kraft_version(self) -> int:
        """The newest level of `kraft.version`."""
        return self._versions.last()[1]

    def at(self, end_offset: int) -> tuple[int, VoterSet]:
        """Return the level and the voters for a snapshot of the records below `end_offset`."""
        return self._versions.before(end_offset), self._voters.before(end_offset)

    def since(self, high_watermark: int) -> list[VoterSet]:
        """Return the sets that may count: the last one known to be committed, and later ones."""
        return self._voters.since(high_watermark)

    def read_snapshot(self) -> None:
        """Begin anew with the newest snapshot and the log after it. Raise CorruptBatch."""
        log = self._log
        self._voters, self._versions = _ByOffset(self._static), _ByOffset(0)
        self.end_offset = log.start_offset
        snapshot_ids = log.snapshot_ids()
        if snapshot_ids:
            newest = snapshot_ids[-1]
            start = log.read_snapshot(newest, 0, READ_BYTES)
            for batch in split_batches(start):
                self.add([entry._replace(offset=newest.offset - 1) for entry in _entries_of(batch)])
                break
            self.end_offset = newest.offset
        self.read_log()

    def read_log(self) -> None:
        """Read the batches that were appended since the last call. Raise CorruptBatch."""
        while (start := self.end_offset) < self._log.end_offset:
            for batch in split_batches(self._log.read(start, READ_BYTES)):
                if batch.base_offset != self.end_offset:
                    raise CorruptBatch(f"batch {batch.base_offset} is at offset {self.end_offset}")
                self.add(_entries_of(batch))
                self.end_offset = batch.next_offset
            if self.end_offset <= start:
                raise CorruptBatch(f"the batch at offset {start} is incomplete")

    def add(self, entries: Iterable[VoterEntry]) -> None:
        """Add the entries of appended batches."""
        for offset, value in entries:
            if isinstance(value, VoterSet):
                self._voters.add(offset, value)
            else:
                self._versions.add(offset, value)
        self._voters.forget_before(self._log.start_offset)
        self._versions.forget_before(self._log.start_offset)

    def truncate_to(self, offset: int) -> None:
        """Take back the entries from an offset on."""
        self._voters.truncate_to(offset)
        self._versions.truncate_to(offset)
        self.end_offset = min(self.end_offset, offset)


def read_entries(records: BytesLike) -> list[VoterEntry]:
    """Read the voter sets and levels in some batches. Raise CorruptBatch."""
    return [entry for batch in split_batches(records) for entry in _entries_of(batch)]


def _entries_of(batch: RecordBatch) -> Iterator[VoterEntry]:
    if not batch.header.is_control:
        return
    if not batch.has_valid_crc:
        raise CorruptBatch(f"the batch at offset {batch.base_offset} fails its CRC")
    for record in batch.records():
        value = _value_of(control_type(record.key), record.value or b"")
        if value is not None:
            yield VoterEntry(record.offset, value)


def _value_of(number: int, data: bytes) -> VoterSet | int | None:
    try:
        if number == ControlType.KRAFT_VOTERS:
            return voters_of_record(decode_struct(VotersRecord, 0, data))
        if number == ControlType.KRAFT_VERSION:
            level = decode_struct(KRaftVersionRecord, 0, data).k_raft_version
            lowest, highest = KRAFT_VERSIONS
            if not lowest <= level <= highest:
                raise ValueError(f"kraft.version {level}, only {lowest} to {highest} is supported")
            return level
    except (DecodeError, ValueError) as error:
        raise CorruptBatch(f"a control record of the quorum cannot be read: {error}") from error
    return None
