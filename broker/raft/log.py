"""The interface of the log that Raft uses. The shell implements it over `PartitionLog`.

Positions are Kafka's: `end_offset` is the next offset. `OffsetAndEpoch` names a snapshot: the end
offset of what the snapshot contains, and the epoch of the last record in it.

Invariants that the implementation keeps:

- `start_offset` is 0, or the end offset of the oldest snapshot.
- Neither `truncate_to` nor an append that overwrites records reaches below `start_offset`.
- Before `flush` returns, a power failure may lose everything except an installed snapshot.
"""

from collections.abc import Sequence
from typing import Protocol

from broker.model import OffsetAndEpoch
from broker.records.header import BytesLike
from common.kafka.protocol.message import Message


class RaftLog(Protocol):
    """One node's copy of the replicated log. An `OSError` from any method is fatal to the node."""

    @property
    def start_offset(self) -> int:
        """Return the first offset that can be read."""

    @property
    def end_offset(self) -> int:
        """Return the offset of the next record."""

    @property
    def last_epoch(self) -> int:
        """Return the epoch of the last record, or of the newest snapshot; 0 if there is neither."""

    def append_as_leader(self, batch: BytesLike, leader_epoch: int) -> int:
        """Append one batch at the end; return the new end offset. Raise KafkaError if refused."""

    def append_control(self, messages: Sequence[Message], leader_epoch: int) -> int:
        """Append one batch of control records; return the new end offset."""

    def append_as_follower(self, records: BytesLike, leader_epoch: int) -> None:
        """Append batches of the leader of `leader_epoch`, byte for byte.

        Raise CorruptBatch for a batch that does not continue the log, or whose epoch is lower than
        the one before it or higher than `leader_epoch`. The log may keep the batches before it.
        """

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches: at least one, unless `offset` is the end offset."""

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch at or below `epoch`, and its end offset.

        For an epoch older than all in the log, return the position at which the log starts.
        """

    def truncate_to(self, offset: int) -> None:
        """Remove all records from `offset` on."""

    def flush(self) -> None:
        """Make all appends and truncations durable. Only the shell calls this method."""

    def snapshot_ids(self) -> list[OffsetAndEpoch]:
        """Return the complete snapshots, the oldest first."""

    def snapshot_size_bytes(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """Return the size of a snapshot; None if there is no such snapshot."""

    def read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        """Return a chunk of a snapshot."""

    def write_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, data: BytesLike) -> None:
        """Write a chunk of an incomplete snapshot; position 0 starts a new file."""

    def install_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Make a written snapshot durable and complete; the log then starts and ends at its end.

        Raise CorruptBatch if the snapshot cannot be read. It is then deleted, the log unchanged.
        """
