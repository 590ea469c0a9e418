"""What replication asks of a replica's log: the part of `PartitionLog` that it uses.

Invariant the log keeps: `log_start_offset` <= `high_watermark` <= `log_end_offset`. An `OSError`
from any method means that the log directory has failed.
"""

from typing import Protocol

from broker.records.header import BytesLike


class ReplicaLog(Protocol):
    """One replica's copy of a partition."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""

    @property
    def high_watermark(self) -> int:
        """Everything below is known to be committed."""

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed readers stop; at most the high watermark."""

    @property
    def leader_epoch(self) -> int:
        """The latest leader epoch in the log, -1 when there is none."""

    def become_leader(self, leader_epoch: int) -> None:
        """Note that a new leader epoch begins at the log's end."""

    def advance_high_watermark(self, offset: int) -> bool:
        """Move the high watermark forward, at most to the log's end; tell whether it moved."""

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Give (epoch, end offset) for the largest epoch at or below one; (-1, -1) if unknown."""

    def append_as_follower(self, records: BytesLike) -> object:
        """Append the leader's batches byte for byte; raises CorruptBatch."""

    def truncate_to(self, offset: int) -> int:
        """Cut off every record, and every epoch that begins, from an offset on."""

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop all records; the log begins and ends at an offset."""

    def delete_records_before(self, offset: int) -> int:
        """Move the log's start, at most to the high watermark."""
