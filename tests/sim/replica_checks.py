"""What must hold after every event of a replication history: the invariants of the package.

The *ledger* is what anybody has ever called committed: the entry at each offset below the highest
high watermark there was. Every log is compared with it as far as both go.

Where a topic allows unclean elections, such an election may lose what was committed, and nothing
else may: from that leader epoch on another *branch* of the ledger counts, which begins with what
the new leader has. A replica belongs to the branch of the last epoch in which its log was seen to
continue its leader's. A topic that is made anew begins with an empty ledger.
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
    """What is committed from a leader epoch on, until another unclean election."""

    leader_epoch: int
    begins_at: int
    """Up to here it is equal to the branch before."""
    entries: list[Entry] = field(default_factory=list)
    is_settled: bool = True
    """Whether its leader has taken over: until then it may go on to follow the one before."""


@dataclass
class View:
    """What the checker knows of one replica's log."""

    log: SimulatedLog
    branch: int = 0
    verified: int = 0
    """Up to where it was seen to be equal to its branch of the ledger."""
    high_watermark: int = 0
    incarnation: int = 0


class ReplicaChecker:
    """Looks at one node after each event that touched it, and at the controller."""

    def __init__(
        self, nodes: dict[int, ReplicaNode], controller: SimulatedController, min_isr: int
    ) -> None:
        self.nodes = nodes
        self.controller = controller
        self.min_isr = min_isr
        self.branches = [Branch(-1, 0)]
        self.views = {node_id: View(node.log) for node_id, node in nodes.items()}
        self.damaged: set[int] = set()
        """Who has lost records that it had, and has not been in sync since."""
        self.damaged_ever: set[int] = set()
        self.unclean: set[int] = set()
        """Who was ended without a clean stop, and has not been in sync since."""
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
        """What is committed now."""
        return self.branches[-1].entries

    def check(self, node: ReplicaNode) -> None:
        """Check a node, what it has told clients, and everybody against the ledger."""
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
        """Return whether a log gives up what an unclean election took; it may cut more of it.

        Where the new leader's log begins later, there is nothing to compare, and all goes.
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
        """Check what the controller has decided, and StrongIsr."""
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
            # Nobody has anything of it, so nobody has lost anything.
            self.damaged.clear()

    def _follow_unclean_elections(self) -> None:
        for leader_epoch, leader in self.controller.unclean_elections[self._seen_elections :]:
            if not self.controller.allows_unclean:
                raise Violation(f"{leader} was elected, it was neither in sync nor eligible")
            before, node = self.ledger, self.nodes[leader]
            if node.log.topic_id == self._topic_id:
                self._check_log(node, self._view(node))
            self.branches.append(self._branch_of(leader, leader_epoch, before))
            # What was promised ended with that.
            self._promised_copies = 1
        self._seen_elections = len(self.controller.unclean_elections)

    def _branch_of(self, leader: int, leader_epoch: int, before: list[Entry]) -> Branch:
        kept = self._has(leader)
        # What an earlier unclean election took may be below where this log begins.
        unknown = [NOBODYS] * (kept - len(before))
        return Branch(leader_epoch, kept, before[:kept] + unknown, is_settled=False)

    def _maybe_settle(self, node: ReplicaNode) -> None:
        """Begin a branch with what its leader has now that it leads."""
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
        """Return up to where a replica has what is committed now."""
        node, ledger = self.nodes[replica], self.ledger
        if node.log.topic_id != self._topic_id:
            return 0
        view, log = self._view(node), node.log
        # It may have all of a later branch before it hears that it has.
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

    # --- what may be done to the cluster ---

    def _effective_min_isr(self) -> int:
        return min(self.min_isr, max(len(self.controller.partition.replicas), 1))

    def _follow_replicas(self) -> None:
        """Follow how many copies there are at least of what is committed.

        A move may leave fewer than `min.insync.replicas`: to one replica, or back from those that
        were in sync. With all replicas in sync there are enough again. That nobody moves away from
        the only ones that are left is for the administrators to see to: `may_move`.
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
        """Return whether nobody has lost anything: the controller may not know of that yet."""
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
        """Take note that a broker is in sync again, in the incarnation that runs."""
        partition = self.controller.partition
        broker = self.controller.image.brokers.get(node.node_id)
        is_current = broker is not None and node.is_up and broker.epoch == node.broker_epoch
        if is_current and node.node_id in partition.isr:
            self.unclean.discard(node.node_id)
            self.damaged.discard(node.node_id)

    def may_end_uncleanly(self, node_id: int, *, loses_data: bool) -> bool:
        """Return whether what KIP-966 promises covers another failure.

        It covers fewer than `min.insync.replicas` that lose data; every unclean end counts as such
        a loss for the controller, for it cannot know. Where nothing was lost all may be killed.
        """
        if not loses_data and not self.damaged:
            return True
        return len(self.unclean | {node_id}) < self._promised_copies
