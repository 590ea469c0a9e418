"""A seeded history of a replicated partition: brokers, a controller, clients, and faults.

The core is the real one (`broker.replication`), and so is the controller (`broker.metadata`). Logs
are in memory (`replica_log`) or real ones on a simulated disk (`replica_disk_log`). The network
loses, repeats and reorders messages, and links are cut one way, including links to the controller:
a fenced leader continues to believe that it leads.

`replica_faults` causes the faults, as many as KIP-966 survives and no more: see
`ReplicaChecker.may_end_uncleanly`. A safety history allows any event at any time. At the end
everything is healed, and then all replicas must get in sync and records must be produced.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from broker.raft.output import Envelope
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.alter_partition import AlterPartitionRequest
from common.kafka.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from common.kafka.protocol.messages.broker_registration import BrokerRegistrationRequest
from common.kafka.protocol.records.metadata import BrokerRegistrationChangeRecord
from tests.sim.network import SimulatedNetwork
from tests.sim.quorum_checks import Violation
from tests.sim.replica_checks import ReplicaChecker
from tests.sim.replica_controller import FEATURES, SimulatedController, listener_of
from tests.sim.replica_disk_log import DiskLog
from tests.sim.replica_faults import CONTROLLER, ReplicaFaults
from tests.sim.replica_log import ReplicaLog
from tests.sim.replica_node import (
    ALL,
    FetchCall,
    FetchReply,
    OffsetsCall,
    OffsetsReply,
    ReplicaNode,
    SimulatedLog,
)
from tests.sim.scheduler import Scheduler

SESSION_TIMEOUT_MS = 100
HEARTBEAT_MS = 25
FETCH_TIMEOUT_MS = 60
CONTROLLER_TIMEOUT_MS = 80
FAULTS_MS = 1_200
PROGRESS_LIMIT_MS = 10_000
UNFENCED = -1


class NoProgress(Violation):
    """The cluster does not recover although all faults are healed."""


class ReplicaSimulation:
    """One history; `run` raises the first violation."""

    def __init__(self, seed: int, *, is_on_disk: bool = False) -> None:
        self.scheduler = Scheduler(seed)
        self.random = random = self.scheduler.random
        self.is_on_disk = is_on_disk
        node_count = random.choice([2, 3, 3, 3, 4, 5])
        self.node_ids = list(range(1, node_count + 1))
        self.allows_unclean = random.random() < 0.15
        self.min_isr = random.choice([1, 2, 2, 2, min(3, node_count)])
        self.metadata_delay_ms = random.choice([3, 10, 60, 150])
        self.metadata_pieces = random.choice([0, 0.2, 0.7])
        """How often a broker reads only one of the new decisions."""
        self.checkpoint_interval_ms = random.choice([50, 1_000, 5_000])
        self.produce_interval_ms = random.choice([6, 15, 40])
        self.fetch_interval_ms = random.choice([3, 8, 20])
        self.burst = random.choice([0, 0.05, 0.2])
        self.controller_slowness = random.choice([0, 0, 0.5])
        """How often a change of the in-sync set waits before the controller handles it."""
        self.controller = SimulatedController(random, SESSION_TIMEOUT_MS, is_elr_enabled=True)
        self.network = SimulatedNetwork(self.scheduler, self.deliver)
        self.nodes = {
            node_id: ReplicaNode(node_id, self.controller, random, self.make_log)
            for node_id in self.node_ids
        }
        self.value = 0
        self.held: list[Callable[[], None]] = []
        self.has_faults = True
        self.found_cluster()
        self.checker = ReplicaChecker(self.nodes, self.controller, self.min_isr)
        self.faults = ReplicaFaults(self)

    def make_log(self, topic_id: bytes | None) -> SimulatedLog:
        if self.is_on_disk:
            return DiskLog(topic_id, self.random.getrandbits(32))
        return ReplicaLog(topic_id)

    def found_cluster(self) -> None:
        """Register all brokers and create the topic, before the history starts."""
        for node in self.nodes.values():
            node.start()
            answer = self.controller.handle(self.registration_of(node), 0)
            node.broker_epoch = answer.broker_epoch
            self.controller.handle(self.heartbeat_of(node, len(self.controller.records)), 0)
        self.create_topic()
        for node in self.nodes.values():
            node.catch_up(0)

    def create_topic(self) -> None:
        random, now_ms = self.random, self.scheduler.now_ms
        count = len(self.node_ids) if random.random() < 0.6 else min(3, len(self.node_ids))
        self.controller.create_topic(
            random.sample(self.node_ids, count),
            self.min_isr,
            now_ms,
            allows_unclean=self.allows_unclean,
        )

    # --- the engine ---

    def send(self, source: int, destination: int, message: Any) -> None:
        self.network.send(Envelope(source, destination, 0, message))

    def deliver(self, envelope: Envelope) -> None:
        if envelope.destination == CONTROLLER:
            respond, request = envelope.message
            if self.is_from_the_dead(request):
                return
            known = len(self.controller.records)
            response = self.controller.handle(request, self.scheduler.now_ms)
            self.checker.check_controller()
            if any(is_unfencing(record) for record in self.controller.records[known:]):
                self.release_held()
            self.send(CONTROLLER, envelope.source, (respond, response))
            return
        node = self.nodes[envelope.destination]
        self.input(node, lambda: self.receive(node, envelope.source, envelope.message))

    def is_from_the_dead(self, request: Any) -> bool:
        """Return True if a registration's process has ended, and its connection with it.

        It would look like another crash, and fence the broker's newer incarnation.
        """
        if not isinstance(request, BrokerRegistrationRequest):
            return False
        node = self.nodes[request.broker_id]
        return request.incarnation_id != incarnation_id_of(node)

    def input(self, node: ReplicaNode, action: Callable[[], None]) -> None:
        """Pass an input to a node, at once or when it continues after a pause."""
        if not node.is_up:
            return
        if node.is_paused:
            node.inbox.append(action)
            return
        action()
        leader_count = self.checker.leader_count
        self.checker.check(node)
        self.checker.note_in_sync(node)
        if self.has_faults and self.checker.leader_count > leader_count:
            self.faults.threaten_leader(node)

    def receive(self, node: ReplicaNode, source: int, message: Any) -> None:
        now_ms = self.scheduler.now_ms
        match message:
            case FetchCall():
                self.send(node.node_id, source, node.serve_fetch(message, now_ms))
                self.alter_partition(node)
            case OffsetsCall():
                self.send(node.node_id, source, node.serve_offsets(message))
            case FetchReply():
                node.take_fetch(message, now_ms)
                self.fetch_soon(node, self.fetch_interval_ms)
            case OffsetsReply():
                node.take_offsets(message, now_ms)
            case (respond, response):
                respond(response)

    def every(self, node: ReplicaNode, interval_ms: int, action: Callable[[], None]) -> None:
        """Repeat an action while this process lives."""
        incarnation = node.incarnation

        def ring() -> None:
            if node.is_up and node.incarnation == incarnation:
                self.input(node, action)
                self.scheduler.after(self.random.randint(1, 2 * interval_ms), ring)

        self.scheduler.after(self.random.randint(1, interval_ms), ring)

    # --- the shell of a broker ---

    def run_process(self, node: ReplicaNode) -> None:
        """Start the recurring actions of a broker."""
        self.every(node, self.metadata_delay_ms, lambda: self.read_metadata(node))
        self.every(node, HEARTBEAT_MS, lambda: self.heartbeat(node))
        self.every(node, 12, lambda: self.fetch(node))
        self.every(node, 40, lambda: node.check_isr(self.scheduler.now_ms))
        self.every(node, 12, lambda: self.alter_partition(node))
        self.every(node, self.checkpoint_interval_ms, lambda: node.log.checkpoint())

    def read_metadata(self, node: ReplicaNode) -> None:
        links = {(CONTROLLER, node.node_id), (node.node_id, CONTROLLER)}
        if not links & self.network.cut:
            is_late = node.knows_itself and self.has_faults
            in_pieces = is_late and self.random.random() < self.metadata_pieces
            node.catch_up(self.scheduler.now_ms, in_pieces=in_pieces)

    def ask_controller(
        self,
        node: ReplicaNode,
        request: Any,
        respond: Callable[[Any], None],
        give_up: Callable[[], None] = lambda: None,
    ) -> None:
        """Send a request; one callback is called once, unless the process ends first."""
        incarnation, is_open = node.incarnation, True

        def close() -> bool:
            nonlocal is_open
            was_open, is_open = is_open and node.incarnation == incarnation, False
            return was_open

        def take(response: Any) -> None:
            if close():
                respond(response)

        def time_out() -> None:
            if node.is_up and close():
                self.input(node, give_up)

        send = partial(self.send, node.node_id, CONTROLLER, (take, request))
        is_change = isinstance(request, AlterPartitionRequest) and self.has_faults
        if is_change and self.random.random() < self.controller_slowness:
            self.hold(send)
        else:
            send()
        self.scheduler.after(CONTROLLER_TIMEOUT_MS, time_out)

    def hold(self, send: Callable[[], None]) -> None:
        """Delay a request, at most until an absent broker has returned."""
        self.held.append(send)

        def let_go() -> None:
            if send in self.held:
                self.held.remove(send)
                send()

        self.scheduler.after(self.random.randint(1, self.faults.held_ms), let_go)

    def release_held(self) -> None:
        held, self.held = self.held, []
        for send in held:
            send()

    def registration_of(self, node: ReplicaNode) -> BrokerRegistrationRequest:
        return BrokerRegistrationRequest(
            broker_id=node.node_id,
            incarnation_id=incarnation_id_of(node),
            listeners=[listener_of(node.node_id)],
            features=FEATURES,
            log_dirs=[b"directory %06d" % node.node_id],
            previous_broker_epoch=node.previous_epoch,
        )

    def heartbeat_of(self, node: ReplicaNode, applied: int) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=node.node_id,
            broker_epoch=node.broker_epoch,
            current_metadata_offset=applied - 1,
            want_shut_down=node.is_stopping,
        )

    def heartbeat(self, node: ReplicaNode) -> None:
        """Register, send a heartbeat, or ask to stop."""
        if node.broker_epoch < 0:
            self.ask_controller(
                node, self.registration_of(node), lambda answer: self.registered(node, answer)
            )
            return
        request = self.heartbeat_of(node, node.applied if node.knows_itself else 0)
        self.ask_controller(node, request, lambda answer: self.alive(node, answer))

    def registered(self, node: ReplicaNode, answer: Any) -> None:
        if answer.error_code == ErrorCode.NONE and node.broker_epoch < 0:
            node.broker_epoch = answer.broker_epoch
            node.follow_image(self.scheduler.now_ms)
            if self.random.random() < 0.5:
                self.read_metadata(node)
                self.heartbeat(node)

    def alive(self, node: ReplicaNode, answer: Any) -> None:
        if answer.error_code == ErrorCode.NONE and answer.should_shut_down and node.is_stopping:
            self.faults.end_cleanly(node)

    def fetch(self, node: ReplicaNode) -> None:
        call = node.next_fetch(self.scheduler.now_ms)
        if call is None:
            return
        node.is_fetching = True
        incarnation, token = node.incarnation, node.fetch_token

        def time_out() -> None:
            if node.is_up and node.incarnation == incarnation and node.fetch_token == token:
                node.is_fetching = False

        self.scheduler.after(FETCH_TIMEOUT_MS, time_out)
        self.send(node.node_id, node.replica.follower.leader_id, call)

    def fetch_soon(self, node: ReplicaNode, delay_ms: int) -> None:
        self.scheduler.after(delay_ms, lambda: self.input(node, lambda: self.fetch(node)))

    def alter_partition(self, node: ReplicaNode) -> None:
        request = node.next_alter_partition(self.scheduler.now_ms)
        if request is not None:
            wanted = request.topics[0].partitions[0].new_isr_with_epochs
            self.faults.threaten_who_joins(node, [broker.broker_id for broker in wanted])
            self.ask_controller(
                node,
                request,
                lambda answer: node.take_alter_partition(answer, self.scheduler.now_ms),
                lambda: node.changes.handle_no_answer(node.now_ms(self.scheduler.now_ms)),
            )

    def start(self, node: ReplicaNode) -> None:
        if not node.is_up:
            node.start()
            self.run_process(node)
            self.input(node, lambda: self.heartbeat(node))

    def restart_later(self, node: ReplicaNode) -> None:
        delay_ms = self.random.choice([1, 1, 20, 150, 400])
        self.scheduler.after(delay_ms, lambda: self.start(node))

    # --- clients ---

    def produce(self) -> None:
        """Append at a broker that believes to lead, including a deposed leader."""
        leaders = [node for node in self.nodes.values() if node.is_up and node.leader is not None]
        if leaders:
            acks, node = self.random.choice([ALL, ALL, 1]), self.random.choice(leaders)
            for _ in range(20 if self.has_faults and self.random.random() < self.burst else 1):
                self.value += 1
                value = self.value
                self.input(
                    node, lambda value=value: node.produce(value, acks, self.scheduler.now_ms)
                )
        delay_ms = self.random.randint(1, 2 * self.produce_interval_ms)
        self.scheduler.after(delay_ms, self.produce)

    def tick_controller(self) -> None:
        self.controller.tick(self.scheduler.now_ms)
        self.checker.check_controller()
        self.scheduler.after(10, self.tick_controller)

    # --- the history ---

    def run(self) -> None:
        for node in self.nodes.values():
            self.run_process(node)
        self.scheduler.after(1, self.produce)
        self.scheduler.after(1, self.tick_controller)
        self.scheduler.after(self.random.randint(1, 200), self.faults.strike)
        self.scheduler.run_until(self.random.randint(FAULTS_MS // 3, FAULTS_MS))
        self.heal_everything()
        self.demand_progress()

    def heal_everything(self) -> None:
        self.has_faults = False
        self.faults.heal_everything()
        for node in self.nodes.values():
            node.fetch_max_records = 50
            if not node.is_up:
                self.start(node)

    def demand_progress(self) -> None:
        """Run until all replicas are in sync and have new, acknowledged records."""
        goal = len(self.checker.acknowledged) + 5
        limit_ms = self.scheduler.now_ms + PROGRESS_LIMIT_MS
        while self.scheduler.now_ms < limit_ms:
            self.scheduler.run_until(self.scheduler.now_ms + 20)
            partition = self.controller.partition
            is_whole = set(partition.isr) == set(partition.replicas)
            is_moving = partition.is_reassigning
            if is_whole and not is_moving and len(self.checker.acknowledged) >= goal:
                return
        raise NoProgress(f"no progress: {self.controller.partition}")


def incarnation_id_of(node: ReplicaNode) -> bytes:
    return (node.node_id << 64 | node.incarnation).to_bytes(16, "big")


def is_unfencing(record: Any) -> bool:
    return isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == UNFENCED
