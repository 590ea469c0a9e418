"""The invariants of a quorum's history, checked after every event.

`Ledger` has the batches that any node has called committed, byte for byte. Every node's log is
compared with it, as far as both extend.
"""

from broker.raft.config import majority_of
from broker.raft.quorum_state import NO_NODE
from broker.raft.roles import Leader
from broker.records.batch import RecordBatch, split_batches
from tests.sim.quorum_node import SimulatedNode

READ_BYTES = 1 << 20


class Violation(AssertionError):  # noqa: N818 - it names what was found
    """An invariant does not hold."""


class Ledger:
    """The committed log: batches by base offset, without gaps."""

    def __init__(self) -> None:
        self.batches: dict[int, bytes] = {}
        self.ends: dict[int, int] = {}
        self.end_offset = 0
        self.values: list[bytes] = []
        self.value_counts: dict[int, int] = {0: 0}
        """The number of values below the end offset of each batch."""

    def add(self, batch: RecordBatch) -> None:
        if batch.base_offset != self.end_offset:
            raise Violation(f"committed {batch.base_offset} after {self.end_offset}")
        self.batches[batch.base_offset] = bytes(batch.buffer)
        self.ends[batch.base_offset] = self.end_offset = batch.next_offset
        if not batch.header.is_control:
            self.values += [bytes(record.value) for record in batch.records()]
        self.value_counts[self.end_offset] = len(self.values)


class Checker:
    """Checks a node after each of its events, and the whole cluster."""

    def __init__(self, nodes: dict[int, SimulatedNode], voters: tuple[int, ...]) -> None:
        self.nodes = nodes
        self.voters = voters
        self.ledger = Ledger()
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[int, int], int] = {}
        self.epochs: dict[int, int] = {}
        self.incarnations: dict[int, int] = {}
        self.high_watermarks: dict[int, int] = {}
        self.verified: dict[int, int] = dict.fromkeys(nodes, 0)
        """By node: the offset up to which its log was checked to equal the ledger."""
        self.acknowledged: dict[int, bytes] = {}
        self.election_count = 0

    def check(self, node: SimulatedNode) -> None:
        with node.undisturbed():
            self._check(node)

    def _check(self, node: SimulatedNode) -> None:
        self._check_log(node)
        if node.is_up:
            self._check_quorum_state(node)
            self._check_high_watermark(node)
            self._check_leader(node)
            self._check_applied(node)
            for position, value in node.acknowledged():
                self._acknowledge(position.offset, value)
        self._check_snapshot_at_start(node)
        self._check_majority()

    def note_told(self, node: SimulatedNode) -> None:
        """Note epoch and vote before a node sends them.

        A crashed process may lose an epoch or a vote that it has not sent.
        """
        quorum = node.node.quorum
        self.epochs[node.node_id] = quorum.leader_epoch
        if quorum.voted_id != NO_NODE:
            key = (node.node_id, quorum.leader_epoch)
            if self.votes.setdefault(key, quorum.voted_id) != quorum.voted_id:
                raise Violation(
                    f"node {node.node_id} voted twice in epoch {quorum.leader_epoch}: "
                    f"{self.votes[key]}, {quorum.voted_id}"
                )

    def _check_log(self, node: SimulatedNode) -> None:
        """Compare the new part of a log, or the part after a truncation, with the ledger."""
        log, node_id = node.log, node.node_id
        verified = min(self.verified[node_id], log.end_offset)
        if log.start_offset > verified:
            self._check_snapshot(node)
            verified = log.start_offset
        while verified < min(log.end_offset, self.ledger.end_offset):
            found = verified
            for batch in split_batches(log.read(verified, READ_BYTES)):
                if self.ledger.batches.get(batch.base_offset) != bytes(batch.buffer):
                    break
                verified = batch.next_offset
            if found == verified:
                break
        self.verified[node_id] = verified

    def _check_snapshot(self, node: SimulatedNode) -> None:
        """Check that the log starts with a snapshot that ends at the end of a committed batch."""
        if node.log.start_offset not in self.ledger.value_counts:
            raise Violation(f"node {node.node_id} starts at {node.log.start_offset}")

    def _check_snapshot_at_start(self, node: SimulatedNode) -> None:
        log = node.log
        if log.start_offset == 0:
            return
        snapshot_ids = log.snapshot_ids()
        if not snapshot_ids or snapshot_ids[0].offset != log.start_offset:
            raise Violation(
                f"node {node.node_id} starts at {log.start_offset}, snapshots {snapshot_ids}"
            )

    def _check_quorum_state(self, node: SimulatedNode) -> None:
        quorum = node.node.quorum
        if quorum.leader_epoch < self.epochs.get(node.node_id, 0):
            raise Violation(f"node {node.node_id}: epoch went back to {quorum.leader_epoch}")

    def _check_high_watermark(self, node: SimulatedNode) -> None:
        node_id, high_watermark = node.node_id, node.node.high_watermark
        if self.incarnations.get(node_id) != node.incarnation:
            self.incarnations[node_id] = node.incarnation
            self.high_watermarks[node_id] = 0
        if high_watermark < self.high_watermarks[node_id]:
            raise Violation(f"node {node_id}: high watermark went back to {high_watermark}")
        self.high_watermarks[node_id] = high_watermark
        if high_watermark > node.log.end_offset:
            raise Violation(f"node {node_id}: high watermark {high_watermark} beyond the log")
        verified = self.verified[node_id]
        if min(high_watermark, self.ledger.end_offset) > verified:
            raise Violation(f"node {node_id}: committed log differs at {verified}")
        if high_watermark > self.ledger.end_offset:
            self._extend(node, high_watermark)

    def _extend(self, node: SimulatedNode, high_watermark: int) -> None:
        """Add the records that a node calls committed to the ledger."""
        while self.ledger.end_offset < high_watermark:
            for batch in split_batches(node.log.read(self.ledger.end_offset, READ_BYTES)):
                if batch.base_offset >= high_watermark:
                    break
                self.ledger.add(batch)
        for other in self.nodes.values():
            with other.undisturbed():
                self._check_log(other)

    def _check_leader(self, node: SimulatedNode) -> None:
        if not isinstance(node.node.role, Leader):
            return
        epoch = node.node.leader_epoch
        if epoch not in self.leaders:
            self.leaders[epoch] = node.node_id
            self.election_count += 1
            if self.verified[node.node_id] < self.ledger.end_offset:
                raise Violation(
                    f"leader {node.node_id} of epoch {epoch} lacks {self.verified[node.node_id]}"
                )
        if self.leaders[epoch] != node.node_id:
            raise Violation(f"epoch {epoch} has leaders {self.leaders[epoch]}, {node.node_id}")

    def _check_applied(self, node: SimulatedNode) -> None:
        for batch in node.machine.applied_batches:
            if self.ledger.batches.get(batch.base_offset) != bytes(batch.buffer):
                raise Violation(f"node {node.node_id} applied another {batch.base_offset}")
        node.machine.applied_batches.clear()
        applied = node.machine.last_batch.offset
        if len(node.machine.values) != self.ledger.value_counts.get(applied):
            raise Violation(f"node {node.node_id} lacks values below {applied}")

    def _acknowledge(self, end_offset: int, value: bytes) -> None:
        count = self.ledger.value_counts.get(end_offset)
        if count is None or self.ledger.values[count - 1] != value:
            raise Violation(f"acknowledged {value!r} is not committed at {end_offset}")
        self.acknowledged[end_offset] = value

    def _check_majority(self) -> None:
        """Check that the committed records are on the disks of a majority."""
        durable = [
            min(self.verified[voter], self.nodes[voter].durable_offset) for voter in self.voters
        ]
        holders = sum(offset >= self.ledger.end_offset for offset in durable)
        if holders < majority_of(len(self.voters)):
            raise Violation(f"committed up to {self.ledger.end_offset}, on disk up to {durable}")

    def check_end(self) -> None:
        """Compare the whole states, after all nodes have caught up."""
        for node in self.nodes.values():
            if node.machine.values != self.ledger.values:
                raise Violation(f"node {node.node_id} ends with other values")
