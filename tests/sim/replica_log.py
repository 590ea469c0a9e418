"""A replica's log in memory, which loses unsynced records: the part of `PartitionLog` in use.

It behaves as `broker.log.partition_log` does, with single records instead of batches, so that ten
thousand histories take little time. `tests/broker/replication/test_log_equivalence.py` makes the
same calls of both.
"""

from collections.abc import Iterator
from random import Random
from struct import Struct
from typing import NamedTuple

from broker.records.errors import CorruptBatch

RECORD = Struct(">qii")


class Entry(NamedTuple):
    """A record with its leader's epoch. Equal entries come from the same append."""

    leader_epoch: int
    value: int


class ReplicaLog:
    """Invariant: `log_start_offset` <= `high_watermark` <= `log_end_offset`."""

    def __init__(self, topic_id: bytes | None = None) -> None:
        self.topic_id = topic_id
        self.log_start_offset = 0
        self.high_watermark = 0
        self.entries: list[Entry] = []  # from `log_start_offset` on
        self.epochs: list[tuple[int, int]] = []  # (epoch, start offset)
        self.synced_offset = 0
        self.checkpointed_high_watermark = 0
        self.changed_from = 0
        """The lowest offset that was appended or truncated since the last check."""
        self.agreed_epoch = -1
        """The last leader epoch in which a Fetch matched the leader's log."""

    @property
    def log_end_offset(self) -> int:
        return self.log_start_offset + len(self.entries)

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark

    @property
    def leader_epoch(self) -> int:
        return self.epochs[-1][0] if self.epochs else -1

    def entry(self, offset: int) -> Entry:
        return self.entries[offset - self.log_start_offset]

    # --- called by the core ---

    def become_leader(self, leader_epoch: int) -> None:
        self._assign(leader_epoch, self.log_end_offset)

    def _assign(self, epoch: int, start_offset: int) -> None:
        if epoch > self.leader_epoch:
            kept = [entry for entry in self.epochs if entry[1] < start_offset]
            self.epochs = [*kept, (epoch, start_offset)]

    def advance_high_watermark(self, offset: int) -> bool:
        offset = min(offset, self.log_end_offset)
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        if leader_epoch == -1 or leader_epoch > self.leader_epoch:
            return -1, -1
        if leader_epoch == self.leader_epoch:
            return leader_epoch, self.log_end_offset
        following = next(i for i, (epoch, _) in enumerate(self.epochs) if epoch > leader_epoch)
        if following == 0:
            return leader_epoch, self.epochs[0][1]
        return self.epochs[following - 1][0], self.epochs[following][1]

    def append_as_leader(self, value: int, leader_epoch: int) -> None:
        self.changed_from = min(self.changed_from, self.log_end_offset)
        self.entries.append(Entry(leader_epoch, value))

    def append_as_follower(self, records: bytes) -> None:
        for offset, epoch, value in RECORD.iter_unpack(records):
            if offset != self.log_end_offset:
                raise CorruptBatch(f"{offset} after {self.log_end_offset}")
            self._assign(epoch, offset)
            self.append_as_leader(value, epoch)

    def truncate_to(self, offset: int) -> int:
        offset = min(offset, self.log_end_offset)
        if offset < self.log_start_offset:
            self.truncate_fully_and_start_at(offset)
            return offset
        self.changed_from = min(self.changed_from, offset)
        del self.entries[offset - self.log_start_offset :]
        self.epochs = [entry for entry in self.epochs if entry[1] < offset]
        self.synced_offset = min(self.synced_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)
        return offset

    def truncate_fully_and_start_at(self, offset: int) -> None:
        self.changed_from = 0
        self.entries, self.epochs = [], []
        self.log_start_offset = self.high_watermark = self.synced_offset = offset

    def delete_records_before(self, offset: int) -> int:
        assert offset <= self.high_watermark, (offset, self.high_watermark)
        if offset > self.log_start_offset:
            epoch = max((e for e in self.epochs if e[1] <= offset), default=None)
            del self.entries[: offset - self.log_start_offset]
            self.log_start_offset = offset
            later = [e for e in self.epochs if e[1] > offset]
            self.epochs = later if epoch is None else [(epoch[0], offset), *later]
        return self.log_start_offset

    # --- called by the shell ---

    def read(self, offset: int, max_records: int) -> bytes:
        first = offset - self.log_start_offset
        return b"".join(self._encoded(first, first + max_records))

    def _encoded(self, first: int, end: int) -> Iterator[bytes]:
        for index, entry in enumerate(self.entries[first:end], first + self.log_start_offset):
            yield RECORD.pack(index, *entry)

    def flush(self) -> None:
        self.synced_offset = self.log_end_offset

    def checkpoint(self) -> None:
        self.checkpointed_high_watermark = self.high_watermark

    # --- restarts and failures ---

    def reopen(self) -> None:
        """Load in a new process: the epochs from the records, the rest from disk."""
        self.epochs = []
        for offset, entry in enumerate(self.entries, self.log_start_offset):
            self._assign(entry.leader_epoch, offset)
        low = min(self.checkpointed_high_watermark, self.log_end_offset)
        self.high_watermark = max(low, self.log_start_offset)

    def lose_unsynced(self, random: Random) -> int:
        """Lose a random part of the unsynced records; return how many records are lost."""
        end = self.log_end_offset
        synced = max(self.synced_offset, self.log_start_offset)
        self.truncate_to(random.choice([synced, random.randint(synced, end)]))
        return end - self.log_end_offset

    def close(self) -> None:
        """Stop cleanly."""
        self.flush()
        self.checkpoint()

    def end_process(self) -> None:
        """End the process; the page cache keeps all written records."""
