"""What Raft asks of its log: a small protocol, with an adapter over `PartitionLog` in the shell.

Positions are Kafka's: `end_offset` is the next offset. A snapshot is named by `OffsetAndEpoch`: the
end offset of what it contains and the epoch of the last record in it.

Invariants the adapter keeps:
- `start_offset` is 0, or the end offset of the oldest snapshot there is.
- `truncate_to`, and what an append overwrites, never reach below `start_offset`.
- Nothing survives a power failure before `flush` returns, except an installed snapshot.
"""

from typing import Protocol

from broker.model import OffsetAndEpoch
from broker.protocol.message import Message
from broker.records.header import BytesLike


class RaftLog(Protocol):
    """One node's copy of the replicated log. An `OSError` from it is fatal to the node."""

    @property
    def start_offset(self) -> int:
        """Return the first offset that can be read."""

    @property
    def end_offset(self) -> int:
        """Return the offset of the next record."""

    @property
    def last_epoch(self) -> int:
        """Return the epoch of the last record, or of the newest snapshot; 0 for nothing at all."""

    def append_as_leader(self, batch: BytesLike, leader_epoch: int) -> int:
        """Append one batch under the next offsets; gives the new end offset. Raises KafkaError."""

    def append_leader_change(self, message: Message, leader_epoch: int) -> int:
        """Append the control record that opens an epoch; gives the new end offset."""

    def append_as_follower(self, records: BytesLike, leader_epoch: int) -> None:
        """Append the batches of the leader of an epoch as they are.

        Raises CorruptBatch for what does not continue the log, and for an epoch that goes back or
        beyond the leader's; the batches before it may be kept.
        """

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Read whole batches, at least one unless `offset` is the end offset."""

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Give the largest epoch at or below the one asked, and where it ends.

        For an epoch older than all, where the log starts.
        """

    def truncate_to(self, offset: int) -> None:
        """Cut off everything from an offset on."""

    def flush(self) -> None:
        """Return when everything appended and cut survives a power failure. The caller's step."""

    def snapshot_ids(self) -> list[OffsetAndEpoch]:
        """List the complete snapshots, the oldest first."""

    def snapshot_size_bytes(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """Give a snapshot's size; None when there is no such snapshot."""

    def read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        """Read a part of a snapshot."""

    def write_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, data: BytesLike) -> None:
        """Write a part of a snapshot that is not complete; position 0 begins anew."""

    def install_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Make a written snapshot durable and complete; the log starts and ends where it ends.

        Raises CorruptBatch for one that cannot be read; it is gone then, and the log unchanged.
        """
