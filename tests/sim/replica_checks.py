"""The invariants of a replication history, checked after every event.

The *ledger* has the entries that any replica has ever called committed: one per offset below the
highest high watermark so far. Every log is compared with it, as far as both extend.

If a topic allows unclean elections, only such an election may lose committed entries: from its
leader epoch on, another *branch* of the ledger applies, which starts with the new leader's log. A
replica belongs to the branch of the last epoch in which its log was seen to continue its leader's.
A topic that is created again starts with an empty ledger.
"""

from dataclasses import dataclass, field

from broker.metadata.image import NO_LEADER
from tests.sim.quorum_checks import Violation
from tests.sim.replica_controller import SimulatedController
from tests.sim.replica_log import Entry
from tests.sim.replica_node import ReplicaNode, SimulatedLog

NOBODYS = Entry(-1, -1)


@dataclass
class Branch:
    """The committed entries from a leader epoch on, until the next unclean election."""

    leader_epoch: int
    begins_at: int
    """The offset up to which it equals the previous branch."""
    entries: list[Entry] = field(default_factory=list)
    is_settled: bool = True
    """True if its leader has taken over; until then replicas may follow the previous leader."""


@dataclass
class View:
    """The checker's state of one replica's log."""

    log: SimulatedLog
    branch: int = 0
    verified: int = 0
    """The offset up to which it was checked to equal its branch of the ledger."""
    high_watermark: int = 0
    incarnation: int = 0


class ReplicaChecker:
    """Checks a node after each of its events, and the controller."""

    def __init__(
        self, nodes: dict[int, ReplicaNode], controller: SimulatedController, min_isr: int
    ) -> None:
        self.nodes = nodes
        self.controller = controller
        self.min_isr = min_isr
        self.branches = [Branch(-1, 0)]
        self.views = {node_id: View(node.log) for node_id, node in nodes.items()}
        self.damaged: set[int] = set()
        """The replicas that have lost records and have not been in sync since."""
        self.damaged_ever: set[int] = set()
        self.unclean: set[int] = set()
        """The replicas that ended without a clean stop and have not been in sync since."""
        self.acknowledged: list[tuple[int, Entry]] = []
        self.leaders: dict[int, int] = {}
        self.leader_count = self.shrink_count = self.expand_count = 0
        self.lost_count = self.topic_count = self.move_count = 0
        self._topic_id = controller.topic_id
        self._isr_size = 0
        self._replicas: set[int] = set(controller.partition.replicas)
        self._promised_copies = self._effective_min_isr()
        self._seen_records = self._seen_elections = 0

    @property
    def ledger(self) -> list[Entry]:
        """The committed entries."""
        return self.branches[-1].entries

    def check(self, node: ReplicaNode) -> None:
        """Check a node, its answers to clients, and all logs against the ledger."""
        self._follow_controller()
        if node.log.topic_id == self._topic_id:
            self._maybe_settle(node)
            view = self._view(node)
            self._check_log(node, view)
            self._check_high_watermark(node, view)
            self._check_role(node)
            for produced in node.acknowledged:
                self._check_acknowledged(view, *produced)
        node.acknowledged.clear()
        self._check_in_sync()

    def _view(self, node: ReplicaNode) -> View:
        view = self.views[node.node_id]
        if view.log is not node.log:
            view = self.views[node.node_id] = View(node.log)
        branch = view.branch
        while branch + 1 < len(self.branches) and (
            self.branches[branch + 1].leader_epoch <= node.log.agreed_epoch
        ):
            branch += 1
            view.verified = min(view.verified, self.branches[branch].begins_at)
        view.branch = branch
        return view

    def _check_log(self, node: ReplicaNode, view: View) -> None:
        log, ledger = node.log, self.branches[view.branch].entries
        verified = max(min(view.verified, log.changed_from), log.log_start_offset)
        log.changed_from = log.log_end_offset
        limit = min(log.log_end_offset, len(ledger))
        while verified < limit and log.entry(verified) == ledger[verified]:
            verified += 1
        view.verified = verified

    def _check_high_watermark(self, node: ReplicaNode, view: View) -> None:
        log, node_id = node.log, node.node_id
        ledger = self.branches[view.branch].entries
        if (
            view.incarnation == node.incarnation
            and log.high_watermark < view.high_watermark
            and node.is_up
            and not self._is_cut_by_an_unclean_election(node, view)
        ):
            raise Violation(f"{node_id}: high watermark went back from {view.high_watermark}")
        view.incarnation, view.high_watermark = node.incarnation, log.high_watermark
        if not log.log_start_offset <= log.high_watermark <= log.log_end_offset:
            raise Violation(f"{node_id}: high watermark {log.high_watermark} outside of the log")
        if view.verified < min(log.high_watermark, len(ledger)):
            # ConsistentRead, LogMatching.
            raise Violation(
                f"{node_id}: {log.entry(view.verified)} committed at {view.verified}, it was "
                f"{ledger[view.verified]}"
            )
        if log.high_watermark > len(ledger):
            for offset in range(len(ledger), log.high_watermark):
                ledger.append(log.entry(offset))
            for other in self.nodes.values():
                if other.log.topic_id == self._topic_id:
                    self._check_log(other, self._view(other))

    def _is_cut_by_an_unclean_election(self, node: ReplicaNode, view: View) -> bool:
        """Return True if a log loses entries because of an unclean election.

        It may be truncated further. If the new leader's log starts later, there is nothing to
        compare, and the whole log is removed.
        """
        following, replica = self.branches[view.branch + 1 :], node.replica
        if replica is None or not following:
            return False
        return replica.leader_epoch >= following[0].leader_epoch

    def _check_role(self, node: ReplicaNode) -> None:
        replica = node.replica
        if replica is None:
            return
        assert replica.leader is None or replica.follower is None
        leader = replica.leader
        if leader is None:
            return
        self.leader_count += leader.leader_epoch not in self.leaders
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

    def _check_acknowledged(self, view: View, offset: int, entry: Entry) -> None:
        ledger = self.branches[view.branch].entries
        if offset >= len(ledger) or ledger[offset] != entry:
            raise Violation(f"acknowledged {entry} at {offset} is not committed")
        self.acknowledged.append((offset, entry))

    # --- the controller ---

    def check_controller(self) -> None:
        """Check the controller's decisions, and StrongIsr."""
        self._follow_controller()
        self._check_in_sync()

    def _follow_controller(self) -> None:
        if len(self.controller.records) != self._seen_records:
            self._seen_records = len(self.controller.records)
            self._follow_topic()
            self._follow_unclean_elections()
            self._check_decided()
            self._follow_replicas()

    def _follow_topic(self) -> None:
        topic_id = self.controller.topic_id
        if topic_id not in {self._topic_id, None}:
            self._topic_id = topic_id
            self.topic_count += 1
            self.branches = [Branch(-1, 0)]
            self.leaders.clear()
            self._promised_copies = self._effective_min_isr()
            # No replica has records of the new topic, so none has lost any.
            self.damaged.clear()

    def _follow_unclean_elections(self) -> None:
        for leader_epoch, leader in self.controller.unclean_elections[self._seen_elections :]:
            if not self.controller.allows_unclean:
                raise Violation(f"{leader} was elected, it was neither in sync nor eligible")
            before, node = self.ledger, self.nodes[leader]
            if node.log.topic_id == self._topic_id:
                self._check_log(node, self._view(node))
            self.branches.append(self._branch_of(leader, leader_epoch, before))
            # The promises for the old topic have ended.
            self._promised_copies = 1
        self._seen_elections = len(self.controller.unclean_elections)

    def _branch_of(self, leader: int, leader_epoch: int, before: list[Entry]) -> Branch:
        kept = self._has(leader)
        # An earlier unclean election may have removed entries below the start of this log.
        unknown = [NOBODYS] * (kept - len(before))
        return Branch(leader_epoch, kept, before[:kept] + unknown, is_settled=False)

    def _maybe_settle(self, node: ReplicaNode) -> None:
        """Start a branch with its leader's log, once the leader has taken over."""
        branch, leader = self.branches[-1], node.leader
        if branch.is_settled or leader is None or leader.leader_epoch < branch.leader_epoch:
            return
        del self.branches[-1]
        view, before = self.views[node.node_id], self.ledger
        view.branch = min(view.branch, len(self.branches) - 1)
        view.verified = min(view.verified, node.log.changed_from)
        again = self._branch_of(node.node_id, branch.leader_epoch, before)
        again.is_settled = True
        self.lost_count += max(len(before) - again.begins_at, 0)
        self.branches.append(again)

    def _check_in_sync(self) -> None:
        partition, ledger, last = self.controller.partition, self.ledger, len(self.branches) - 1
        for replica in (*partition.isr, *partition.elr):
            view = self.views[replica]
            is_known = view.log is self.nodes[replica].log and view.branch == last
            if is_known and view.verified >= len(ledger):
                continue
            if replica not in self.damaged and self._has(replica) < len(ledger):
                raise Violation(
                    f"{replica} of ISR {partition.isr} and ELR {partition.elr} has "
                    f"{self._has(replica)} of {len(ledger)} that are committed"
                )

    def _has(self, replica: int) -> int:
        """Return the offset up to which a replica has the committed entries."""
        node, ledger = self.nodes[replica], self.ledger
        if node.log.topic_id != self._topic_id:
            return 0
        view, log = self._view(node), node.log
        # It may have all entries of a later branch before its metadata shows it.
        following = self.branches[view.branch + 1 :]
        offset = min([view.verified, *(branch.begins_at for branch in following)])
        offset = max(offset, log.log_start_offset)
        limit = min(log.log_end_offset, len(ledger))
        while offset < limit and log.entry(offset) == ledger[offset]:
            offset += 1
        return offset

    def _check_decided(self) -> None:
        partition, image = self.controller.partition, self.controller.image
        isr, elr = set(partition.isr), set(partition.elr)
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
        leader = partition.leader
        if leader not in {NO_LEADER, *self.damaged} and self._has(leader) < len(self.ledger):
            raise Violation(
                f"leader {leader} of epoch {partition.leader_epoch} has {self._has(leader)} of "
                f"{len(self.ledger)} that are committed"
            )

    # --- allowed faults ---

    def _effective_min_isr(self) -> int:
        return min(self.min_isr, max(len(self.controller.partition.replicas), 1))

    def _follow_replicas(self) -> None:
        """Track the smallest possible number of copies of the committed entries.

        A reassignment may leave fewer than `min.insync.replicas`: to one replica, or back from
        those that were in sync. When all replicas are in sync there are enough again. `may_move`
        ensures that administrators do not move a partition away from its only remaining copies.
        """
        partition = self.controller.partition
        if self._replicas != set(partition.replicas):
            self._replicas = set(partition.replicas)
            self.move_count += 1
            staying = self._replicas - set(partition.removing_replicas)
            copies = len({*partition.isr, *partition.elr} - self.damaged)
            self._promised_copies = min(self._promised_copies, max(copies, 1), len(staying) or 1)
        if set(partition.isr) == self._replicas and not partition.is_reassigning:
            self._promised_copies = self._effective_min_isr()

    def may_move(self) -> bool:
        """Return True if no replica has lost records, which the controller may not know yet."""
        return not self.damaged

    def note_unclean_end(self, node_id: int, lost_count: int) -> None:
        self.unclean.add(node_id)
        if lost_count:
            self.damaged.add(node_id)
            self.damaged_ever.add(node_id)
        node = self.nodes[node_id]
        if node.log.topic_id == self._topic_id:
            self._check_log(node, self._view(node))

    def note_in_sync(self, node: ReplicaNode) -> None:
        """Note that a broker is in sync again, in its running incarnation."""
        partition = self.controller.partition
        broker = self.controller.image.brokers.get(node.node_id)
        is_current = broker is not None and node.is_up and broker.epoch == node.broker_epoch
        if is_current and node.node_id in partition.isr:
            self.unclean.discard(node.node_id)
            self.damaged.discard(node.node_id)

    def may_end_uncleanly(self, node_id: int, *, loses_data: bool) -> bool:
        """Return True if the guarantees of KIP-966 cover another failure.

        They cover fewer than `min.insync.replicas` replicas that lose data. For the controller,
        every unclean end counts as a loss of data. If no data is lost, all processes may be killed.
        """
        if not loses_data and not self.damaged:
            return True
        return len(self.unclean | {node_id}) < self._promised_copies
