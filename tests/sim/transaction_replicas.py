"""One partition of `transaction_data`: three replicas in the ISR, each with a real log."""

from random import Random
from typing import Any

from broker.log.append import AppendOrigin
from broker.log.config import LogConfig
from broker.log.log_start import OpenHints
from broker.log.partition_log import PartitionLog
from broker.log.producers.verification import TransactionAppend
from tests.lib.logs import NOW_MS, joined, open_log
from tests.lib.simulated_storage import SimulatedStorage

REPLICA_COUNT = 3
MAX_BYTES = 1 << 20


class Replicated:
    """One partition: three logs, one of them the leader's; all replicas are in the ISR."""

    def __init__(self, random: Random, *, verifies: bool = True) -> None:
        self.random = random
        self.verifies = verifies
        self.config = LogConfig(internal_segment_bytes=random.choice([300, 600, 5_000]))
        self.logs = [self._opened(SimulatedStorage(n), None) for n in range(REPLICA_COUNT)]
        self.leader, self.epoch = 0, 0
        self.positions: dict[int, int] = {}
        """By follower, the log end offset that the leader knows of."""
        self.log.become_leader(0)

    def _opened(self, storage: SimulatedStorage, old: PartitionLog | None) -> PartitionLog:
        hints = OpenHints(timestamp_ms=NOW_MS)
        if old is not None:
            hints = OpenHints(
                is_clean=self.random.random() < 0.5,
                recovery_point=old.recovery_point,
                high_watermark=old.high_watermark,
                timestamp_ms=NOW_MS,
            )
            if hints.is_clean:
                old.close()
        log = open_log(storage, self.config, hints)
        log.producers.requires_verification = self.verifies
        return log

    @property
    def log(self) -> PartitionLog:
        return self.logs[self.leader]

    @property
    def is_level(self) -> bool:
        """True if all replicas have all records, below their high watermarks."""
        end_offset = self.log.log_end_offset
        return all(log.log_end_offset == log.high_watermark == end_offset for log in self.logs)

    def append(self, batch: bytes, transaction: TransactionAppend, origin: AppendOrigin) -> int:
        info = self.log.append_as_leader(
            batch,
            leader_epoch=self.epoch,
            timestamp_ms=NOW_MS,
            origin=origin,
            transaction=transaction,
        )
        return info.last_offset + 1

    def replicate(self, follower: int) -> None:
        """Let a follower fetch once, and advance the high watermark."""
        if follower == self.leader:
            return
        log, leader = self.logs[follower], self.log
        epoch, end_offset = leader.end_offset_for_epoch(log.leader_epoch)
        if log.leader_epoch >= 0 and (epoch != log.leader_epoch or end_offset < log.log_end_offset):
            own_epoch, own_end = log.end_offset_for_epoch(epoch)
            log.truncate_to(min(end_offset, own_end) if own_epoch == epoch else own_end)
            return
        limit = self.random.choice([1, 200, MAX_BYTES])
        start = self.positions[follower] = log.log_end_offset
        read = leader.read(
            start, max_bytes=limit, max_offset=leader.log_end_offset, is_replica=True
        )
        if read.size_bytes:
            log.append_as_follower(joined(read.parts), timestamp_ms=NOW_MS)
        log.advance_high_watermark(leader.high_watermark)
        if len(self.positions) == REPLICA_COUNT - 1:
            leader.advance_high_watermark(min(self.positions.values()))

    def elect(self, leader: int) -> None:
        self.leader, self.epoch = leader, self.epoch + 1
        self.positions = {}
        self.log.become_leader(self.epoch)

    def restart(self, replica: int) -> None:
        old = self.logs[replica]
        storage: Any = old.place.storage
        self.logs[replica] = self._opened(storage, old)
