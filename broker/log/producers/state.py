"""All producers of one partition, its open transactions, and their snapshots on disk.

`map_end_offset` is the end of the log that this object has seen. After a restart the newest
snapshot at or below the log's end is loaded, and the batches above it are read again.

A transaction is *ongoing* until its marker is appended, and *unreplicated* until the high watermark
passes the marker. The first unstable offset is the first offset of the oldest transaction of either
kind; read_committed readers stop there. A snapshot above the high watermark does not have the
unreplicated transactions, so they are read from the log. The producers still come from the
snapshot, because their records may have been deleted from the log.
"""

import logging
from itertools import count

from broker.log.index.transaction_index import AbortedTransaction
from broker.log.names import Endings, bases_of
from broker.log.producers.entry import NO_OFFSET, AppendedBatch, ProducerEntry
from broker.log.producers.snapshot import SUFFIX, decode_snapshot, encode_snapshot
from broker.log.producers.verification import (
    NO_GUARD,
    NO_TRANSACTION,
    TransactionAppend,
    Verification,
)
from broker.log.storage import Storage, read_file, remove_files
from broker.records.control import EndMarker
from broker.records.errors import CorruptBatch
from broker.records.header import TRANSACTIONAL_FLAG, BatchHeader
from common.kafka.errors import ErrorCode, KafkaError

DEFAULT_EXPIRATION_MS = 24 * 60 * 60 * 1000

_logger = logging.getLogger(__name__)


class ProducerState:
    """Invariant: the keys of `ongoing` ascend, and each is the start of an open transaction."""

    requires_verification = False
    """True if the first batch of a transaction needs a guard (`verification`)."""

    def __init__(self, storage: Storage, directory: str, expiration_ms: int) -> None:
        self._storage = storage
        self._directory = directory
        self.expiration_ms = expiration_ms
        """producer.id.expiration.ms"""
        self.producers: dict[int, ProducerEntry] = {}
        self.ongoing: dict[int, int] = {}
        """By the first offset of each open transaction: its producer id."""
        self.unreplicated: dict[int, int] = {}
        """By the first offset of each ended transaction: its marker's offset."""
        self._verifications: dict[int, Verification] = {}
        self._guards = count(NO_GUARD + 1)
        self.snapshot_offsets: list[int] = []
        self.unsynced_snapshots: set[int] = set()
        """Snapshots that a power failure may damage; their CRC detects it."""
        self.map_end_offset = 0

    def find_duplicate(self, header: BatchHeader) -> AppendedBatch | None:
        """Return the appended batch that `header` repeats, None if it is not a repeat."""
        entry = self.producers.get(header.producer_id)
        return entry.find_duplicate(header) if entry is not None else None

    def begin_verification(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        *,
        timestamp_ms: int,
        raises_epochs: bool,
    ) -> int:
        """Return the guard for the first append of a transaction; NO_GUARD if it is open."""
        entry = self.producers.get(producer_id)
        if entry is not None and entry.has_open_transaction(producer_epoch):
            return NO_GUARD
        found = self._verifications.get(producer_id)
        if found is None:
            found = self._verifications[producer_id] = Verification(
                next(self._guards),
                producer_epoch,
                base_sequence,
                raises_epochs,
                timestamp_ms,
            )
        else:
            found.note(producer_epoch, base_sequence)
        return found.guard

    def may_append(self, producer_id: int, producer_epoch: int, guard: int) -> bool:
        """Return True if a guard is valid, or not needed because the transaction is open."""
        entry = self.producers.get(producer_id)
        if entry is not None and entry.has_open_transaction(producer_epoch):
            return True
        found = self._verifications.get(producer_id)
        return found is not None and found.guard == guard

    def give_up_verification(self, producer_id: int, guard: int) -> None:
        """Remove a guard after a final refusal, because its owner will not append."""
        found = self._verifications.get(producer_id)
        if found is not None and found.guard == guard:
            del self._verifications[producer_id]

    def validate_data(
        self,
        header: BatchHeader,
        *,
        checks_sequence: bool,
        transaction: TransactionAppend = NO_TRANSACTION,
    ) -> None:
        """Raise KafkaError unless a leader may append this batch."""
        entry = self.producers.get(header.producer_id)
        if header.attributes & TRANSACTIONAL_FLAG and self.requires_verification:
            self._validate_verified(header.producer_id, header.producer_epoch, transaction.guard)
        if checks_sequence and self._verifications:
            verification = self._verifications.get(header.producer_id)
            if verification is not None:
                if entry is not None:
                    # A fenced producer must get that error and not an error about its sequence.
                    entry.validate_epoch(header.producer_epoch)
                is_known = entry is not None and bool(entry.batches)
                verification.validate_sequence(header, is_known=is_known)
        if entry is None:
            return
        if checks_sequence:
            entry.validate_data(header)
        else:
            entry.validate_epoch(header.producer_epoch)

    def validate_in_transaction(self, producer_id: int, producer_epoch: int, guard: int) -> None:
        """Raise KafkaError unless a coordinator may append to this transaction."""
        if self.requires_verification:
            self._validate_verified(producer_id, producer_epoch, guard)
        entry = self.producers.get(producer_id)
        if entry is not None:
            entry.validate_epoch(producer_epoch)

    def _validate_verified(self, producer_id: int, producer_epoch: int, guard: int) -> None:
        if not self.may_append(producer_id, producer_epoch, guard):
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
            )

    def validate_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        marker: EndMarker,
        transaction_version: int,
    ) -> None:
        """Raise KafkaError unless a leader may append this marker."""
        entry = self.producers.get(producer_id)
        if entry is not None:
            entry.validate_marker(producer_epoch, marker, transaction_version)

    def add_data(self, header: BatchHeader, base_offset: int) -> None:
        """Add a producer's data batch that was appended at `base_offset`."""
        if self._verifications:
            self._verifications.pop(header.producer_id, None)
        entry = self._entry(header.producer_id)
        entry.add_batch(header, base_offset)
        is_transactional = header.attributes & TRANSACTIONAL_FLAG
        if is_transactional and entry.transaction_first_offset == NO_OFFSET:
            entry.transaction_first_offset = base_offset
            self.ongoing[base_offset] = header.producer_id

    def add_marker(
        self, header: BatchHeader, marker: EndMarker, offset: int, timestamp_ms: int
    ) -> AbortedTransaction | None:
        """Add an appended end marker; return the entry for the transaction index, if aborted."""
        self._verifications.pop(header.producer_id, None)
        entry = self._entry(header.producer_id)
        first_offset = entry.transaction_first_offset
        entry.add_marker(header.producer_epoch, marker, timestamp_ms)
        if first_offset == NO_OFFSET:
            return None
        del self.ongoing[first_offset]
        self.unreplicated[first_offset] = offset
        if marker.is_commit:
            return None
        last_stable_offset = next(iter(self.ongoing), offset + 1)
        return AbortedTransaction(header.producer_id, first_offset, offset, last_stable_offset)

    def _entry(self, producer_id: int) -> ProducerEntry:
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerEntry(producer_id)
        return entry

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the oldest ongoing or unreplicated transaction, None without one."""
        first = next(iter(self.ongoing), None)
        if not self.unreplicated:
            return first
        ended = min(self.unreplicated)
        return ended if first is None else min(first, ended)

    @property
    def has_ended_transactions(self) -> bool:
        """True if a transaction of one of these producers has ever ended."""
        return any(entry.coordinator_epoch >= 0 for entry in self.producers.values())

    def on_high_watermark(self, high_watermark: int) -> None:
        """Remove ended transactions whose marker is below the high watermark."""
        if self.unreplicated:
            self.unreplicated = {
                first: last for first, last in self.unreplicated.items() if last >= high_watermark
            }

    def last_data_offsets(self) -> dict[int, tuple[int, int]]:
        """Return each producer's (last data offset, epoch); the cleaner keeps those batches."""
        return {
            producer_id: (entry.last_data_offset, entry.epoch)
            for producer_id, entry in self.producers.items()
        }

    def expire(self, timestamp_ms: int) -> int:
        """Remove producers that have not written for the expiration time; return their number."""
        expired = [
            producer_id
            for producer_id, entry in self.producers.items()
            if entry.transaction_first_offset == NO_OFFSET
            and timestamp_ms - entry.last_timestamp_ms >= self.expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]
        self._verifications = {
            producer_id: verification
            for producer_id, verification in self._verifications.items()
            if timestamp_ms - verification.timestamp_ms < self.expiration_ms
        }
        return len(expired)

    def list_snapshots(self, endings: Endings, segment_bases: list[int]) -> None:
        """Note the snapshots among the files of the partition's directory.

        A clean stop writes one that belongs to no segment; only the latest of these is kept.
        """
        self.snapshot_offsets = sorted(bases_of(endings, SUFFIX))
        strays = [offset for offset in self.snapshot_offsets if offset not in segment_bases]
        self._drop([offset for offset in strays if offset != self.snapshot_offsets[-1]])

    def take_snapshot(self) -> None:
        """Write the producers as of `map_end_offset`, unless that snapshot exists.

        A snapshot without producers is written too, so that the next start skips older segments.
        """
        offset = self.map_end_offset
        if offset in self.snapshot_offsets or not offset:
            return
        file = self._storage.open(self._path(offset), create=True)
        file.truncate(0)
        file.write(0, encode_snapshot(self.producers.values()))
        self.unsynced_snapshots.add(offset)
        self.snapshot_offsets = sorted([*self.snapshot_offsets, offset])

    def sync_snapshots(self) -> None:
        """Make the snapshots survive a power failure; this is safe on another thread."""
        while self.unsynced_snapshots:
            offset = min(self.unsynced_snapshots)
            try:
                self._storage.open(self._path(offset)).sync()
            except FileNotFoundError:
                pass  # It was deleted meanwhile.
            self.unsynced_snapshots.discard(offset)

    def load(self, first_offset: int, log_end_offset: int, timestamp_ms: int) -> None:
        """Load the newest usable snapshot within the log; delete snapshots beyond its end.

        The caller then adds the batches from `map_end_offset` on, which is `first_offset` without a
        snapshot.
        """
        self._forget()
        self._drop([offset for offset in self.snapshot_offsets if offset > log_end_offset])
        self.map_end_offset, entries = self._newest_snapshot(first_offset, log_end_offset)
        self._take_over(entries, timestamp_ms)

    def at_snapshot_within(self, first_offset: int, offset: int) -> "ProducerState":
        """Return a separate state from the newest snapshot at or below an offset."""
        former = ProducerState(self._storage, self._directory, self.expiration_ms)
        former.map_end_offset, entries = self._newest_snapshot(first_offset, offset)
        former._take_over(entries, 0)  # At time 0 no producer expires.
        return former

    def _newest_snapshot(self, first_offset: int, offset: int) -> tuple[int, list[ProducerEntry]]:
        """Read the newest intact snapshot at or below an offset; delete damaged ones above it."""
        for found in reversed(self.snapshot_offsets[:]):
            if found > offset:
                continue
            try:
                return found, decode_snapshot(read_file(self._storage, self._path(found)) or b"")
            except CorruptBatch as error:
                _logger.warning(
                    "producer snapshot dropped file=%s reason=%s", self._path(found), error
                )
                self._drop([found])
        return first_offset, []

    def _take_over(self, entries: list[ProducerEntry], timestamp_ms: int) -> None:
        self.producers = {entry.producer_id: entry for entry in entries}
        self.expire(timestamp_ms)
        open_transactions = sorted(
            (entry.transaction_first_offset, entry.producer_id)
            for entry in self.producers.values()
            if entry.transaction_first_offset != NO_OFFSET
        )
        self.ongoing = dict(open_transactions)

    def drop_snapshots_before(self, offset: int) -> None:
        """Delete the snapshots below an offset."""
        self._drop([snapshot for snapshot in self.snapshot_offsets if snapshot < offset])

    def drop_snapshots_after(self, offset: int) -> None:
        """Delete the snapshots above an offset."""
        self._drop([snapshot for snapshot in self.snapshot_offsets if snapshot > offset])

    def drop_snapshot(self, offset: int) -> None:
        """Delete the snapshot of a removed segment, if it exists."""
        if offset in self.snapshot_offsets:
            self._drop([offset])

    def clear(self, offset: int) -> None:
        """Remove all state and snapshots; the log restarts at an offset."""
        self._drop(self.snapshot_offsets[:])
        self._forget()
        self.map_end_offset = offset

    def _forget(self) -> None:
        self.producers, self.ongoing, self.unreplicated = {}, {}, {}
        self._verifications = {}

    def move_to(self, directory: str) -> None:
        """Use another directory, after the partition's directory was renamed or moved."""
        self._directory = directory

    def _drop(self, offsets: list[int]) -> None:
        remove_files(self._storage, [self._path(offset) for offset in offsets])
        self.snapshot_offsets = [x for x in self.snapshot_offsets if x not in offsets]

    def _path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}{SUFFIX}"
