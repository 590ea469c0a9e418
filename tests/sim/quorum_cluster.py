"""A seeded history of a quorum: 1-5 voters, 0-5 observers, clients, and faults.

There are two modes, as in TigerBeetle's simulator. In *safety* mode faults occur everywhere and at
all times, and only the invariants are checked. In *liveness* mode a majority of the voters is the
core, whose machines and links are healthy from a point on; the other faults stay as they are, and
the core must make progress. At the end of both modes everything is healed, and all nodes must reach
the same state.
"""

from collections.abc import Sequence
from functools import partial

from broker.raft.config import RaftConfig, majority_of
from broker.raft.output import Envelope
from broker.raft.voter_set import static_voters
from common.kafka.protocol.structs import decode_struct, encode_struct
from tests.sim.network import SimulatedNetwork, Weather
from tests.sim.quorum_checks import Checker, Violation
from tests.sim.quorum_node import SimulatedNode
from tests.sim.scheduler import Scheduler

CLUSTER_ID = "simulated"
ELECTION_TIMEOUT_MS = 100
FETCH_TIMEOUT_MS = 200
FAULTS_MS = 4_000
PROGRESS_LIMIT_MS = 20_000
FAULT_INTERVAL_MS = 80
PROPOSAL_INTERVAL_MS = 20


class QuorumSimulation:
    """One history; `run` raises the first violation."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.scheduler = Scheduler(seed)
        self.random = random = self.scheduler.random
        self.voters = tuple(range(1, random.choice([1, 2, 3, 3, 3, 4, 5, 5]) + 1))
        observer_count = random.choice([0, 0, 1, 2, 5])
        self.node_ids = [*self.voters, *range(101, 101 + observer_count)]
        self.fetch_max_bytes = random.choice([1, 1, 300, 1 << 20])
        self.is_encoded = random.random() < 0.1
        self.young_leader_risk = random.choice([0, 0, 0.3, 0.7])
        """How often a new leader crashes or is cut off at once (Raft paper, figure 8)."""
        self.network = SimulatedNetwork(self.scheduler, self.deliver)
        self.network.weather = self.draw_weather()
        self.nodes = {
            node_id: SimulatedNode(
                self.config_of(node_id), random.randrange(1 << 30), self.network.send
            )
            for node_id in self.node_ids
        }
        self.timers: dict[int, int] = {}
        self.checker = Checker(self.nodes, self.voters)
        self.proposal_count = 0
        self.has_faults = True
        self.core: set[int] = set()

    def config_of(self, node_id: int) -> RaftConfig:
        return RaftConfig(
            node_id=node_id,
            voters=static_voters(self.voters),
            cluster_id=CLUSTER_ID,
            election_timeout_ms=ELECTION_TIMEOUT_MS,
            election_backoff_max_ms=ELECTION_TIMEOUT_MS,
            fetch_timeout_ms=FETCH_TIMEOUT_MS,
            request_timeout_ms=self.random.choice([60, 200]),
            retry_backoff_ms=5,
            fetch_max_wait_ms=50,
            fetch_max_bytes=self.fetch_max_bytes,
            snapshot_max_bytes=self.random.choice([64, 1 << 20]),
        )

    def draw_weather(self) -> Weather:
        random = self.random
        return Weather(
            loss=random.choice([0, 0, 0.02, 0.2]),
            duplication=random.choice([0, 0.02, 0.2]),
            slowness=random.choice([0, 0.05, 0.3]),
        )

    # The engine.

    def deliver(self, envelope: Envelope) -> None:
        if self.is_encoded:
            envelope = _through_bytes(envelope)
        node = self.nodes[envelope.destination]
        self.input(node, lambda: node.step(envelope, self.scheduler.now_ms))

    def input(self, node: SimulatedNode, action) -> None:
        """Pass an input to a node, at once or when its disk is done."""
        if not node.is_up:
            return
        if node.is_paused or node.in_flight is not None:
            node.inbox.append(action)
            return
        self.attempt(node, action)
        self.go_on(node)

    def attempt(self, node: SimulatedNode, action) -> None:
        """Run an action of a node; a disk failure ends its process."""
        try:
            action()
        except OSError:
            node.crash(keep_unsynced=False)
            self.restart_later(node)
        election_count = self.checker.election_count
        self.checker.check(node)
        if self.has_faults and self.checker.election_count > election_count:
            self.threaten(node)

    def threaten(self, leader: SimulatedNode) -> None:
        if self.random.random() < self.young_leader_risk:
            fault = self.random.choice([self.crash, self.crash, self.cut_off, self.pause])
            delay_ms = self.random.randint(1, 30)
            self.scheduler.after(delay_ms, lambda: fault(leader) if self.has_faults else None)

    def go_on(self, node: SimulatedNode) -> None:
        """Carry out the node's output, at once or when the disk is done."""
        while node.is_up and not node.is_paused and node.in_flight is None:
            if node.driver.is_applying and self.random.random() < 0.5:
                # The next step runs in another turn, after the inputs that arrive until then.
                again = partial(self.go_on_applying, node, node.incarnation)
                self.scheduler.after(self.random.choice([0, 1, 5, 20]), again)
                return
            if node.driver.has_work:
                node.in_flight = output = node.driver.begin()
                delay_ms = self.random.choice([0, 1, 1, 2, 10]) if output.must_persist else 0
                if delay_ms:
                    done = partial(self.persisted, node, node.incarnation)
                    self.scheduler.after(delay_ms, done)
                    return
                self.carry_out(node)
            elif node.inbox:
                self.attempt(node, node.inbox.pop(0))
            elif node.node.next_deadline_ms() <= self.scheduler.now_ms:
                # The deadline passed while the disk was busy; one tick is enough, see `set_timer`.
                self.attempt(node, lambda: node.tick(self.scheduler.now_ms))
                if not node.driver.has_work:
                    self.set_timer(node)
                    return
            else:
                self.set_timer(node)
                return

    def go_on_applying(self, node: SimulatedNode, incarnation: int) -> None:
        if node.is_up and node.incarnation == incarnation:
            self.go_on(node)

    def persisted(self, node: SimulatedNode, incarnation: int) -> None:
        if node.is_up and node.incarnation == incarnation and node.in_flight is not None:
            if node.is_paused:
                self.scheduler.after(5, lambda: self.persisted(node, incarnation))
                return
            self.carry_out(node)
            self.go_on(node)

    def carry_out(self, node: SimulatedNode) -> None:
        output = node.in_flight

        def persist_and_complete() -> None:
            flushed_offset = node.driver.persist(output)
            if self.has_faults and output.must_persist and self.random.random() < 0.002:
                # A crash between the disk and the network.
                self.crash(node)
                return
            self.checker.note_told(node)
            node.in_flight = None
            node.driver.complete(output, flushed_offset, self.scheduler.now_ms)

        self.attempt(node, persist_and_complete)

    def set_timer(self, node: SimulatedNode) -> None:
        now_ms = self.scheduler.now_ms
        due_ms = node.node.next_deadline_ms()
        if due_ms <= now_ms:
            raise Violation(
                f"node {node.node_id} is due at {due_ms}, it is {now_ms}: {node.node.role}"
            )
        self.timers[node.node_id] = due_ms
        incarnation = node.incarnation

        def ring() -> None:
            is_current = node.incarnation == incarnation
            if node.is_up and is_current and self.timers.get(node.node_id) == due_ms:
                self.input(node, lambda: node.tick(self.scheduler.now_ms))

        self.scheduler.at(due_ms, ring)

    def start(self, node: SimulatedNode) -> None:
        if node.is_up:
            return
        self.attempt(node, lambda: node.start(self.scheduler.now_ms))
        self.go_on(node)

    def crash(self, node: SimulatedNode) -> None:
        if not node.is_up:
            return
        node.crash(keep_unsynced=self.random.random() < 0.4)
        self.checker.check(node)
        self.restart_later(node)
        if self.random.random() < 0.3:
            # The other nodes see that its port refuses connections.
            for other in self.nodes.values():
                self.input(other, lambda other=other: self.tell_lost(other, node.node_id))

    def tell_lost(self, node: SimulatedNode, lost_id: int) -> None:
        node.driver.take(node.node.lose(lost_id, self.scheduler.now_ms))

    def restart_later(self, node: SimulatedNode) -> None:
        self.scheduler.after(self.random.choice([1, 20, 150, 600]), lambda: self.start(node))

    # Faults.

    def propose(self) -> None:
        self.proposal_count += 1
        value = f"v{self.proposal_count}".encode()
        leaders = [n for n in self.nodes.values() if n.is_up and n.node.is_leader]
        if leaders:
            node = self.random.choice(leaders)
            self.input(node, lambda: node.propose(value, self.scheduler.now_ms))
        self.scheduler.after(self.random.randint(1, 2 * PROPOSAL_INTERVAL_MS), self.propose)

    def strike(self) -> None:
        """Cause or heal one fault."""
        if not self.has_faults:
            return
        node = self.nodes[self.random.choice(self.node_ids)]
        if self.random.random() < 0.5:
            node = next((n for n in self.nodes.values() if n.is_up and n.node.is_leader), node)
        fault = self.random.choice(
            [
                self.crash,
                self.crash,
                self.cut_off,
                self.cut_links,
                self.heal,
                self.heal,
                self.pause,
                self.stop,
                self.snapshot,
                self.snapshot,
                self.snapshot,
                self.fail_disk,
                self.change_weather,
                self.crash_all,
            ]
        )
        fault(node)
        self.scheduler.after(self.random.randint(1, 2 * FAULT_INTERVAL_MS), self.strike)

    def cut_off(self, node: SimulatedNode) -> None:
        others = [other for other in self.node_ids if other != node.node_id]
        inbound, outbound = self.random.choice([(True, True), (True, False), (False, True)])
        self.network.isolate(node.node_id, others, inbound=inbound, outbound=outbound)

    def cut_links(self, node: SimulatedNode) -> None:
        for source in self.node_ids:
            for destination in self.node_ids:
                if source != destination and self.random.random() < 0.3:
                    self.network.cut.add((source, destination))

    def heal(self, node: SimulatedNode) -> None:
        self.network.cut.clear()

    def change_weather(self, node: SimulatedNode) -> None:
        self.network.weather = self.draw_weather()

    def pause(self, node: SimulatedNode) -> None:
        if not node.is_up:
            return
        node.is_paused = True
        incarnation = node.incarnation
        self.scheduler.after(
            self.random.choice([20, 150, 500]), lambda: self.resume(node, incarnation)
        )

    def resume(self, node: SimulatedNode, incarnation: int) -> None:
        if node.is_up and node.incarnation == incarnation and node.is_paused:
            node.is_paused = False
            self.input(node, lambda: node.tick(self.scheduler.now_ms))

    def stop(self, node: SimulatedNode) -> None:
        """Stop cleanly: the process ends when its leadership is handed over, or soon after."""
        incarnation, give_up_ms = node.incarnation, self.scheduler.now_ms + 100

        def end_when_handed_over() -> None:
            if not node.is_up or node.incarnation != incarnation:
                return
            if node.node.may_stop or self.scheduler.now_ms >= give_up_ms:
                node.crash(keep_unsynced=True)
                self.checker.check(node)
                self.restart_later(node)
                return
            self.scheduler.after(2, end_when_handed_over)

        def begin() -> None:
            node.driver.take(node.node.stop(self.scheduler.now_ms))
            self.scheduler.after(2, end_when_handed_over)

        self.input(node, begin)

    def snapshot(self, node: SimulatedNode) -> None:
        is_cleaning = self.random.random() < 0.7
        self.input(node, lambda: node.take_snapshot(self.scheduler.now_ms, is_cleaning=is_cleaning))

    def fail_disk(self, node: SimulatedNode) -> None:
        if node.is_up:
            node.storage.fail_after(self.random.randint(0, 20))

    def crash_all(self, node: SimulatedNode) -> None:
        if self.random.random() < 0.5:
            for other in self.nodes.values():
                self.crash(other)

    # The history.

    def run(self, *, is_liveness: bool = False) -> None:
        for node in self.nodes.values():
            self.start(node)
        self.scheduler.after(1, self.propose)
        self.scheduler.after(self.random.randint(1, 500), self.strike)
        self.scheduler.run_until(self.random.randint(FAULTS_MS // 2, FAULTS_MS))
        self.has_faults = False
        if is_liveness:
            self.keep_only_a_core()
            self.demand_progress(sorted(self.core), "the core")
        self.heal_everything()
        self.demand_progress(self.node_ids, "everybody")
        self.checker.check_end()

    def keep_only_a_core(self) -> None:
        """Heal a majority; the faults of the other nodes stay."""
        self.heal_core(self.random.sample(self.voters, majority_of(len(self.voters))))

    def heal_core(self, majority: Sequence[int]) -> None:
        self.core = set(majority)
        self.network.cut.clear()
        for node_id in self.node_ids:
            if node_id not in self.core:
                inbound, outbound = (
                    self.random.choice([False, True]),
                    self.random.choice([False, True]),
                )
                self.network.isolate(node_id, list(majority), inbound=inbound, outbound=outbound)
        self.network.weather = Weather()
        for node in self.nodes.values():
            node.storage.heal()
            node.is_paused = False
            if node.node_id in self.core:
                self.start(node)
                self.go_on(node)

    def heal_everything(self) -> None:
        self.network.cut.clear()
        self.network.weather = Weather()
        for node in self.nodes.values():
            node.storage.heal()
            node.is_paused = False
            self.start(node)
            self.go_on(node)

    def demand_progress(self, node_ids: list[int], who: str) -> None:
        """Run until the nodes have acknowledged and applied new proposals."""
        goal = len(self.checker.acknowledged) + 20
        limit_ms = self.scheduler.now_ms + PROGRESS_LIMIT_MS
        while self.scheduler.now_ms < limit_ms:
            self.scheduler.run_until(self.scheduler.now_ms + 50)
            nodes = [self.nodes[node_id] for node_id in node_ids]
            end_offset = self.checker.ledger.end_offset
            if len(self.checker.acknowledged) >= goal and all(
                node.is_up and node.machine.last_batch.offset == end_offset for node in nodes
            ):
                return
        roles = {node.node_id: node.node and node.node.role for node in self.nodes.values()}
        raise Violation(f"{who} {node_ids} made no progress: {roles}")


_LATEST = {
    "Vote": 2,
    "BeginQuorumEpoch": 1,
    "EndQuorumEpoch": 1,
    "Fetch": 18,
    "FetchSnapshot": 1,
    "AddRaftVoter": 1,
    "RemoveRaftVoter": 0,
    "UpdateRaftVoter": 0,
    "ApiVersions": 4,
}


def _through_bytes(envelope: Envelope) -> Envelope:
    """Encode and decode a message, so that nodes share no objects and the codec is tested."""
    message = type(envelope.message)
    name = message.__name__.removesuffix("Request").removesuffix("Response")
    data = encode_struct(envelope.message, _LATEST[name])
    return envelope._replace(message=decode_struct(message, _LATEST[name], data))
