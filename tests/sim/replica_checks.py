"""What must hold after every event of a replication history: the invariants of the package.

The *ledger* is what anybody has ever called committed: the entry at each offset below the highest
high watermark there was. Every log is compared with it as far as both go.
"""

from broker.metadata.image import NO_LEADER
from tests.sim.quorum_checks import Violation
from tests.sim.replica_controller import SimulatedController
from tests.sim.replica_log import Entry
from tests.sim.replica_node import ReplicaNode


class ReplicaChecker:
    """Looks at one node after each event that touched it, and at the controller."""

    def __init__(self, nodes: dict[int, ReplicaNode], controller: SimulatedController) -> None:
        self.nodes = nodes
        self.controller = controller
        self.ledger: list[Entry] = []
        self.verified = dict.fromkeys(nodes, 0)
        """Up to where a log was seen to be equal to the ledger."""
        self.high_watermarks: dict[int, tuple[int, int]] = {}
        self.damaged: set[int] = set()
        """Who has lost records that it had, and has not been in sync since."""
        self.damaged_ever: set[int] = set()
        self.unclean: set[int] = set()
        """Who was ended without a clean stop, and has not been in sync since."""
        self.acknowledged: list[tuple[int, Entry]] = []
        self.leaders: dict[int, int] = {}
        self.shrink_count = self.expand_count = 0
        self._isr_size = 0
        self._seen_records = 0

    def check(self, node: ReplicaNode) -> None:
        """Check a node, what it has told clients, and everybody against the ledger."""
        self._check_log(node)
        self._check_high_watermark(node)
        self._check_role(node)
        for produced in node.acknowledged:
            self._check_acknowledged(*produced)
        node.acknowledged.clear()
        self.check_controller()

    def _check_log(self, node: ReplicaNode) -> None:
        log = node.log
        verified = max(min(self.verified[node.node_id], log.changed_from), log.log_start_offset)
        log.changed_from = log.log_end_offset
        limit = min(log.log_end_offset, len(self.ledger))
        while verified < limit and log.entry(verified) == self.ledger[verified]:
            verified += 1
        self.verified[node.node_id] = verified

    def _check_high_watermark(self, node: ReplicaNode) -> None:
        log, node_id = node.log, node.node_id
        incarnation, before = self.high_watermarks.get(node_id, (0, 0))
        if incarnation == node.incarnation and log.high_watermark < before and node.is_up:
            raise Violation(f"{node_id}: high watermark went back from {before}")
        self.high_watermarks[node_id] = (node.incarnation, log.high_watermark)
        if not log.log_start_offset <= log.high_watermark <= log.log_end_offset:
            raise Violation(f"{node_id}: high watermark {log.high_watermark} outside of the log")
        verified = self.verified[node_id]
        if verified < min(log.high_watermark, len(self.ledger)):
            # ConsistentRead, LogMatching.
            raise Violation(
                f"{node_id}: {log.entry(verified)} committed at {verified}, it was "
                f"{self.ledger[verified]}"
            )
        if log.high_watermark > len(self.ledger):
            for offset in range(len(self.ledger), log.high_watermark):
                self.ledger.append(log.entry(offset))
            for other in self.nodes.values():
                self._check_log(other)

    def _check_role(self, node: ReplicaNode) -> None:
        replica = node.replica
        if replica is None:
            return
        assert replica.leader is None or replica.follower is None
        leader = replica.leader
        if leader is None:
            return
        if self.leaders.setdefault(leader.leader_epoch, node.node_id) != node.node_id:
            raise Violation(f"epoch {leader.leader_epoch} has two leaders")
        partition = self.controller.partition
        if partition.leader_epoch == leader.leader_epoch and not (
            leader.isr.maximal >= set(partition.isr)
        ):
            raise Violation(
                f"maximal ISR {set(leader.isr.maximal)} of leader {node.node_id} is not "
                f"all of {partition.isr}"
            )

    def _check_acknowledged(self, offset: int, entry: Entry) -> None:
        if offset >= len(self.ledger) or self.ledger[offset] != entry:
            raise Violation(f"acknowledged {entry} at {offset} is not committed")
        self.acknowledged.append((offset, entry))

    def check_controller(self) -> None:
        """Check what the controller has decided, and StrongIsr."""
        partition = self.controller.partition
        isr, elr = set(partition.isr), set(partition.elr)
        if len(self.controller.records) != self._seen_records:
            self._seen_records = len(self.controller.records)
            self._check_decided(isr, elr)
        for replica in isr | elr:
            if replica in self.damaged:
                continue
            if self.verified[replica] < len(self.ledger):
                raise Violation(
                    f"{replica} of ISR {partition.isr} and ELR {partition.elr} has "
                    f"{self.verified[replica]} of {len(self.ledger)} that are committed"
                )

    def _check_decided(self, isr: set[int], elr: set[int]) -> None:
        partition, image = self.controller.partition, self.controller.image
        self.shrink_count += len(isr) < self._isr_size
        self.expand_count += len(isr) > self._isr_size
        self._isr_size = len(isr)
        if partition.leader not in isr | {NO_LEADER}:
            raise Violation(f"leader {partition.leader} is not in ISR {isr}")
        if isr & elr or not isr | elr <= set(partition.replicas):
            raise Violation(f"ISR {isr} and ELR {elr} of {partition.replicas}")
        if any(image.brokers[replica].is_fenced for replica in isr) and image.features.get(
            "eligible.leader.replicas.version"
        ):
            raise Violation(f"a fenced broker in ISR {isr}")
        if partition.leader != NO_LEADER and partition.leader not in self.damaged:
            self._check_complete(partition.leader, partition.leader_epoch)

    def _check_complete(self, leader: int, leader_epoch: int) -> None:
        if self.verified[leader] < len(self.ledger):
            raise Violation(
                f"leader {leader} of epoch {leader_epoch} has {self.verified[leader]} of "
                f"{len(self.ledger)} that are committed"
            )

    # --- what may be done to the cluster ---

    def note_unclean_end(self, node_id: int, lost_count: int) -> None:
        self.unclean.add(node_id)
        if lost_count:
            self.damaged.add(node_id)
            self.damaged_ever.add(node_id)
        self.verified[node_id] = 0

    def note_in_sync(self, node: ReplicaNode) -> None:
        """Take note that a broker is in sync again, in the incarnation that runs."""
        partition = self.controller.partition
        broker = self.controller.image.brokers.get(node.node_id)
        is_current = broker is not None and node.is_up and broker.epoch == node.broker_epoch
        if is_current and node.node_id in partition.isr:
            self.unclean.discard(node.node_id)
            self.damaged.discard(node.node_id)

    def may_end_uncleanly(self, node_id: int, min_isr: int, *, loses_data: bool) -> bool:
        """Return whether what KIP-966 promises covers another failure.

        It covers fewer than `min.insync.replicas` that lose data; every unclean end counts as such
        a loss for the controller, for it cannot know. Where nothing was lost all may be killed.
        """
        if not loses_data and not self.damaged:
            return True
        return len(self.unclean | {node_id}) < min_isr
