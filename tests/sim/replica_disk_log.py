"""A replica's log on disk: the real `PartitionLog`, on a storage that loses and tears writes.

It has the interface of `replica_log`, so a history can be played on either. The state of a log
directory is kept beside it as in files: the checkpoints, and whether the last stop was clean. The
entries are also kept in memory for the checker; after each process they are read from the segments
again.
"""

from random import Random

from broker.log.config import LogConfig
from broker.log.local_log import LogPlace
from broker.log.log_start import OpenHints
from broker.log.partition_log import PartitionLog
from broker.log.recovery import open_partition_log
from broker.log.storage import DelayedDeletion
from broker.model import TopicPartition
from broker.records.batch import RecordBatch, split_batches
from broker.records.build import build_batch
from broker.records.header import BytesLike
from tests.lib.logs import joined, read_batches
from tests.lib.simulated_storage import SimulatedStorage
from tests.sim.replica_log import Entry

DIRECTORY = "/logs/t-0"
# A segment has a few batches, so that logs roll and are truncated across segments.
CONFIG = LogConfig(segment_bytes=1_000, index_interval_bytes=200)
ONE_BATCH_BYTES = 80
TIMESTAMP_MS = 0


class DiskLog:
    """One replica's log. Invariant: `entries` equals the segments, from `log_start_offset` on."""

    def __init__(self, topic_id: bytes | None, seed: int) -> None:
        self.topic_id = topic_id
        self.agreed_epoch = -1
        self.changed_from = 0
        self.entries: list[Entry] = []
        self._storage = SimulatedStorage(seed)
        self._checkpoint = OpenHints()
        self._is_clean = False
        self._open()

    def _open(self) -> None:
        saved = self._checkpoint
        hints = OpenHints(
            is_clean=self._is_clean,
            recovery_point=saved.recovery_point,
            log_start_offset=saved.log_start_offset,
            high_watermark=saved.high_watermark,
        )
        self._is_clean = False
        self._storage.make_directory(DIRECTORY)
        place = LogPlace(
            self._storage,
            DelayedDeletion(self._storage),
            on_recovery_point_lowered=self._save_recovery_point,
        )
        self.real: PartitionLog = open_partition_log(
            TopicPartition("t", 0), DIRECTORY, CONFIG, place, hints
        )
        self.entries = [
            entry_of(batch)
            for batch in read_batches(self.real)
            if batch.header.base_offset >= self.real.log_start_offset
        ]
        self.changed_from = 0

    def _save_recovery_point(self) -> None:
        saved = self._checkpoint
        point = min(saved.recovery_point, self.real.recovery_point)
        self._checkpoint = OpenHints(
            recovery_point=point,
            log_start_offset=saved.log_start_offset,
            high_watermark=saved.high_watermark,
        )

    # --- called by the core ---

    @property
    def log_start_offset(self) -> int:
        return self.real.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.real.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self.real.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.real.last_stable_offset

    @property
    def leader_epoch(self) -> int:
        return self.real.leader_epoch

    def become_leader(self, leader_epoch: int) -> None:
        self.real.become_leader(leader_epoch)

    def advance_high_watermark(self, offset: int) -> bool:
        return self.real.advance_high_watermark(offset)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        return self.real.end_offset_for_epoch(leader_epoch)

    def append_as_follower(self, records: BytesLike) -> None:
        before = self.log_end_offset
        self.real.append_as_follower(records)
        self.changed_from = min(self.changed_from, before)
        self.entries += [
            entry_of(batch)
            for batch in split_batches(records)
            if before <= batch.header.base_offset < self.log_end_offset
        ]

    def truncate_to(self, offset: int) -> int:
        self.changed_from = min(self.changed_from, offset)
        start = self.log_start_offset
        end = self.real.truncate_to(offset)
        del self.entries[max(end - start, 0) :]
        assert len(self.entries) == end - self.log_start_offset, (self.entries, end)
        return end

    def truncate_fully_and_start_at(self, offset: int) -> None:
        self.changed_from = 0
        self.real.truncate_fully_and_start_at(offset)
        self.entries.clear()

    def delete_records_before(self, offset: int) -> int:
        before = self.log_start_offset
        start = self.real.delete_records_before(offset)
        del self.entries[: start - before]
        self.real.delete_old_segments(TIMESTAMP_MS)
        assert self.log_start_offset == start, (self.log_start_offset, start)
        return start

    # --- called by the shell ---

    def entry(self, offset: int) -> Entry:
        return self.entries[offset - self.log_start_offset]

    def append_as_leader(self, value: int, leader_epoch: int) -> None:
        self.changed_from = min(self.changed_from, self.log_end_offset)
        batch = build_batch([(None, b"%d" % value, (), TIMESTAMP_MS)])
        self.real.append_as_leader(batch, leader_epoch=leader_epoch, timestamp_ms=TIMESTAMP_MS)
        self.entries.append(Entry(leader_epoch, value))

    def read(self, offset: int, max_records: int) -> bytes:
        found = self.real.read(
            offset,
            max_bytes=max_records * ONE_BATCH_BYTES,
            max_offset=self.log_end_offset,
            is_replica=True,
        )
        return joined(found.parts)

    def flush(self) -> None:
        self.real.flush()

    def checkpoint(self) -> None:
        real = self.real
        self._checkpoint = OpenHints(
            recovery_point=real.recovery_point,
            log_start_offset=real.log_start_offset,
            high_watermark=real.high_watermark,
        )

    def close(self) -> None:
        self.real.close()
        self.checkpoint()
        self._is_clean = True

    # --- faults ---

    def end_process(self) -> None:
        self._storage.crash(keep_unsynced=True)

    def reopen(self) -> None:
        self._storage.crash(keep_unsynced=True)
        self._open()

    def lose_unsynced(self, random: Random) -> int:
        end = self.log_end_offset
        self._is_clean = False
        self._storage.crash(keep_unsynced=False)
        self._open()
        return end - self.log_end_offset


def entry_of(batch: RecordBatch) -> Entry:
    (record,) = batch.records()
    return Entry(batch.header.partition_leader_epoch, int(record.value))
