"""The interface of the log that replication uses: a part of `PartitionLog`.

The log keeps `log_start_offset` <= `high_watermark` <= `log_end_offset`. An `OSError` from any
method means that the log directory has failed.
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
        """Everything below this offset is known to be committed."""

    @property
    def last_stable_offset(self) -> int:
        """The end offset for read_committed readers; at most the high watermark."""

    @property
    def leader_epoch(self) -> int:
        """The latest leader epoch in the log, -1 when there is none."""

    def become_leader(self, leader_epoch: int) -> None:
        """Note that a new leader epoch starts at the log's end."""

    def advance_high_watermark(self, offset: int) -> bool:
        """Advance the high watermark, at most to the log's end; return True if it moved."""

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return the largest epoch at or below `leader_epoch` and its end; (-1, -1) if unknown."""

    def append_as_follower(self, records: BytesLike) -> object:
        """Append the leader's batches byte for byte; raise CorruptBatch."""

    def truncate_to(self, offset: int) -> int:
        """Remove every record, and every epoch that starts, from `offset` on."""

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records; the log then starts and ends at `offset`."""

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start offset, at most to the high watermark."""
