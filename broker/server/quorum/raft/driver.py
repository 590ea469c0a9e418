"""Carries out the outputs of a `RaftNode`, in the only order that is safe: persist, send, apply.

One round: `begin` takes the outputs since the last round (one flush for many appends), `persist`
blocks on the disk, `complete` sends and applies. A shell with an event loop may run `persist` on a
thread, if it holds all other inputs back until `complete`; `run` does it at once. An `OSError` from
`persist` is fatal: the content of the disk is unknown after it.

A large batch is applied in steps, one per round (`is_applying`), and other inputs may be carried
out between two steps. The batch counts as applied only after its last step; a snapshot from the
leader that arrives meanwhile contains the batch, and replaces it.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from broker.model import OffsetAndEpoch
from broker.raft.log import RaftLog
from broker.raft.node import RaftNode
from broker.raft.output import Envelope, LeaderChange, Output
from broker.raft.quorum_state import QuorumState
from broker.records.batch import RecordBatch, split_batches
from broker.records.errors import CorruptBatch
from broker.server.quorum.raft.snapshot_files import file_name

READ_BYTES = 1024 * 1024


class QuorumListener(Protocol):
    """The state machine that the log replicates."""

    def load_snapshot(self, snapshot_id: OffsetAndEpoch, data: bytes) -> None:
        """Replace the whole state with that of a snapshot."""

    def apply(self, batch: RecordBatch) -> Iterator[None]:
        """Replay a committed batch; control batches are included, because they take offsets.

        The changes must become visible with the last step, not before.
        """

    def change_leader(self, change: LeaderChange) -> None:
        """Handle a new leader; this node as leader only after all earlier batches are applied."""


class Effects(NamedTuple):
    """The receivers of the driver's outputs."""

    save: Callable[[QuorumState], None]
    """Saves the epoch and the vote; returns when they survive a power failure."""
    send: Callable[[Envelope], None]
    listener: QuorumListener


class RaftDriver:
    """Invariant: every output is persisted before it is sent or applied."""

    def __init__(self, node: RaftNode, log: RaftLog, node_id: int, effects: Effects) -> None:
        self.node = node
        self._log = log
        self._node_id = node_id
        self._effects = effects
        self._pending = Output()
        self._own_leadership: LeaderChange | None = None
        self._high_watermark = 0
        self._steps: Iterator[None] | None = None
        self.applied_offset = 0

    def start(self, now_ms: int) -> None:
        """Start the node, and the listener from the newest snapshot."""
        self._pending.high_watermark = self.node.high_watermark
        self.take(self.node.start(now_ms))

    def take(self, output: Output) -> None:
        """Add an output to the next round."""
        self._pending.merge(output)

    @property
    def has_work(self) -> bool:
        """True if a round is due."""
        return self.is_applying or not self._pending.is_empty

    @property
    def is_applying(self) -> bool:
        """True if committed batches have still to be applied, in a later turn."""
        return self._steps is not None

    def begin(self) -> Output:
        """Take the outputs that wait."""
        output, self._pending = self._pending, Output()
        return output

    def persist(self, output: Output) -> int | None:
        """Write to disk; return the end offset of the flushed log, None without a flush."""
        if output.quorum_state is not None:
            self._effects.save(output.quorum_state)
        if not output.must_flush:
            return None
        end_offset = self._log.end_offset
        self._log.flush()
        return end_offset

    def complete(self, output: Output, flushed_offset: int | None, now_ms: int) -> None:
        """Send, then apply as much as one turn should."""
        for envelope in output.send:
            self._effects.send(envelope)
        if flushed_offset is not None:
            self.take(self.node.flushed(flushed_offset, now_ms))
        for change in output.leader_changes:
            self._change_leader(change)
        if output.high_watermark is not None:
            self._high_watermark = output.high_watermark
            self._steps = self._steps or self._apply()
        self._take_step()

    def run(self, now_ms: int) -> None:
        """Carry out all outputs, blocking; of a large batch one step is applied."""
        while True:
            output = self.begin()
            self.complete(output, self.persist(output), now_ms)
            if self._pending.is_empty:
                return

    def _change_leader(self, change: LeaderChange) -> None:
        self._own_leadership = None
        if change.leader_id == self._node_id:
            self._own_leadership = change
        else:
            self._effects.listener.change_leader(change)

    def _take_step(self) -> None:
        if self._steps is None:
            return
        if self.applied_offset < self._log.start_offset:
            self._steps = self._apply()
            self._load_snapshot(self._log.snapshot_ids()[-1])
        for _ in self._steps:
            return
        self._steps = None

    def _apply(self) -> Iterator[None]:
        yield from self._apply_committed()
        own = self._own_leadership
        if own is not None and self.applied_offset > own.start_offset:
            self._own_leadership = None
            self._effects.listener.change_leader(own)

    def _apply_committed(self) -> Iterator[None]:
        """Apply all committed batches, including those that are committed meanwhile.

        A batch that was not committed when it was read is read again: between two steps a new
        leader may have replaced it.
        """
        while self.applied_offset < self._high_watermark:
            before, batch = self.applied_offset, None
            committed_offset = self._high_watermark
            for batch in split_batches(self._log.read(before, READ_BYTES)):
                _validate_stored(batch, self.applied_offset)
                if batch.next_offset > committed_offset:
                    break
                yield from self._effects.listener.apply(batch)
                self.applied_offset = batch.next_offset
            if batch is None:
                raise CorruptBatch(f"the batch at offset {before} cannot be read")
            if self.applied_offset == before:
                # A batch is committed as a whole, even if a peer's high watermark is within it.
                break

    def _load_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        size_bytes = self._log.snapshot_size_bytes(snapshot_id)
        assert size_bytes is not None, snapshot_id
        data = self._log.read_snapshot(snapshot_id, 0, size_bytes)
        try:
            self._effects.listener.load_snapshot(snapshot_id, data)
        except CorruptBatch as error:
            raise CorruptBatch(f"snapshot {file_name(snapshot_id)}: {error}") from error
        self.applied_offset = snapshot_id.offset


def _validate_stored(batch: RecordBatch, offset: int) -> None:
    """Raise CorruptBatch unless a batch is as it was written; Kafka checks every batch, too.

    A disk may change a byte long after it was synced, and this is the metadata of the cluster.
    """
    if batch.base_offset != offset:
        raise CorruptBatch(f"batch {batch.base_offset} is at offset {offset}")
    if not batch.has_valid_crc:
        raise CorruptBatch(f"the batch at offset {offset} fails its CRC")
