"""A seeded history of a replicated partition: brokers, a controller, clients, and what goes wrong.

The core is the real one (`broker.replication`), and so is the controller (`broker.metadata`). Logs
are in memory (`replica_log`), the network loses, repeats and reorders, links are cut in one
direction each, also those to the controller: a leader it has fenced goes on to believe.

What goes wrong: processes killed, with and without the power; clean stops; wiped disks; pauses;
cut links; a new controller; preferred elections; deleted records. As much as KIP-966 says
can be survived, and no more: see `ReplicaChecker.may_end_uncleanly`. A safety history lets anything
happen at any time; in the end all heals, and then everybody must be in sync again and produce.
"""

from collections.abc import Callable
from typing import Any

from broker.errors import ErrorCode
from broker.metadata.image import NO_LEADER
from broker.protocol.messages.alter_partition import AlterPartitionRequest
from broker.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from broker.protocol.messages.broker_registration import BrokerRegistrationRequest
from broker.raft.output import Envelope
from tests.sim.network import SimulatedNetwork, Weather
from tests.sim.quorum_checks import Violation
from tests.sim.replica_checks import ReplicaChecker
from tests.sim.replica_controller import FEATURES, SimulatedController, listener_of
from tests.sim.replica_node import (
    ALL,
    FetchCall,
    FetchReply,
    OffsetsCall,
    OffsetsReply,
    ReplicaNode,
)
from tests.sim.scheduler import Scheduler

CONTROLLER = 0
SESSION_TIMEOUT_MS = 100
HEARTBEAT_MS = 25
FETCH_TIMEOUT_MS = 60
CONTROLLER_TIMEOUT_MS = 80
FAULTS_MS = 1_200
FAULT_INTERVAL_MS = 60
PROGRESS_LIMIT_MS = 10_000


class ReplicaSimulation:
    """One history; `run` raises what goes wrong."""

    def __init__(self, seed: int) -> None:
        self.scheduler = Scheduler(seed)
        self.random = random = self.scheduler.random
        node_count = random.choice([2, 3, 3, 3, 4])
        self.min_isr = random.choice([1, 2, 2, 2, min(3, node_count)])
        self.metadata_delay_ms = random.choice([3, 10, 60, 150])
        self.checkpoint_interval_ms = random.choice([50, 1_000, 5_000])
        self.produce_interval_ms = random.choice([6, 15, 40])
        self.fetch_interval_ms = random.choice([3, 8, 20])
        self.young_leader_risk = random.choice([0, 0, 0.3, 0.7])
        """How often a new leader does not last: what it has not heard of then is what is tested."""
        self.burst = random.choice([0, 0.05, 0.2])
        self.controller_slowness = random.choice([0, 0, 0.5])
        """How often a change of the in-sync set waits before it is looked at."""
        self.joiner_risk = random.choice([0, 0.3, 0.7])
        self.node_ids = list(range(1, node_count + 1))
        self.controller = SimulatedController(random, SESSION_TIMEOUT_MS, is_elr_enabled=True)
        self.network = SimulatedNetwork(self.scheduler, self.deliver)
        self.nodes = {
            node_id: ReplicaNode(node_id, self.controller, random) for node_id in self.node_ids
        }
        self.faults = self.draw_faults()
        self.value = 0
        self.has_faults = True
        self.found_cluster()
        self.checker = ReplicaChecker(self.nodes, self.controller)
        self.network.weather = self.draw_weather()

    def found_cluster(self) -> None:
        """Register everybody and make the topic, before the history begins."""
        for node in self.nodes.values():
            node.start()
            answer = self.controller.handle(self.registration_of(node), 0)
            node.broker_epoch = answer.broker_epoch
            self.controller.handle(self.heartbeat_of(node, len(self.controller.records)), 0)
        self.controller.create_topic(list(self.node_ids), self.min_isr, 0)
        for node in self.nodes.values():
            node.catch_up(0)

    def draw_weather(self) -> Weather:
        random = self.random
        return Weather(
            loss=random.choice([0, 0, 0.02, 0.2]),
            duplication=random.choice([0, 0.02, 0.2]),
            slowness=random.choice([0, 0.05, 0.3]),
            slow_ms=random.choice([80, 250, 250]),
        )

    def draw_faults(self) -> list[Callable[[ReplicaNode], None]]:
        """Choose what goes wrong in this history: some things hide behind others."""
        faults = [
            self.kill,
            self.kill_all,
            self.cut_power,
            self.cut_power,
            self.wipe,
            self.stop,
            self.flush,
            self.pause,
            self.cut_off,
            self.cut_off_controller,
            self.cut_links,
            self.change_weather,
            self.elect_controller,
            self.elect_preferred,
            self.delete_records,
        ]
        chosen = self.random.sample(faults, self.random.randint(2, len(faults)))
        return [*chosen, self.heal, self.heal]

    # --- the engine ---

    def send(self, source: int, destination: int, message: Any) -> None:
        self.network.send(Envelope(source, destination, 0, message))

    def deliver(self, envelope: Envelope) -> None:
        if envelope.destination == CONTROLLER:
            respond, request = envelope.message
            if self.is_from_the_dead(request):
                return
            response = self.controller.handle(request, self.scheduler.now_ms)
            self.checker.check_controller()
            self.send(CONTROLLER, envelope.source, (respond, response))
            return
        node = self.nodes[envelope.destination]
        self.input(node, lambda: self.receive(node, envelope.source, envelope.message))

    def is_from_the_dead(self, request: Any) -> bool:
        """Tell whether a registration outlived its process: with that its connection has gone.

        It would look like another crash, and cost the broker that has come since its place.
        """
        if not isinstance(request, BrokerRegistrationRequest):
            return False
        node = self.nodes[request.broker_id]
        return request.incarnation_id != incarnation_id_of(node)

    def input(self, node: ReplicaNode, action: Callable[[], None]) -> None:
        """Give a node an input, now or when it goes on."""
        if not node.is_up:
            return
        if node.is_paused:
            node.inbox.append(action)
            return
        action()
        epoch_count = len(self.checker.leaders)
        self.checker.check(node)
        self.checker.note_in_sync(node)
        if self.has_faults and len(self.checker.leaders) > epoch_count:
            self.threaten(node)

    def threaten(self, leader: ReplicaNode) -> None:
        if self.random.random() < self.young_leader_risk:
            fault = self.random.choice(
                [self.kill, self.cut_power, self.stop, self.cut_off, self.elect_preferred]
            )
            delay_ms = self.random.randint(1, 60)
            self.scheduler.after(delay_ms, lambda: fault(leader) if self.has_faults else None)

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
        """Do something again and again while this process lives."""
        incarnation = node.incarnation

        def ring() -> None:
            if node.is_up and node.incarnation == incarnation:
                self.input(node, action)
                self.scheduler.after(self.random.randint(1, 2 * interval_ms), ring)

        self.scheduler.after(self.random.randint(1, interval_ms), ring)

    # --- the shell of a broker ---

    def run_process(self, node: ReplicaNode) -> None:
        """Begin what a broker does as long as it runs."""
        self.every(node, self.metadata_delay_ms, lambda: self.read_metadata(node))
        self.every(node, HEARTBEAT_MS, lambda: self.heartbeat(node))
        self.every(node, 12, lambda: self.fetch(node))
        self.every(node, 40, lambda: node.check_isr(self.scheduler.now_ms))
        self.every(node, 12, lambda: self.alter_partition(node))
        self.every(node, self.checkpoint_interval_ms, node.log.checkpoint)

    def read_metadata(self, node: ReplicaNode) -> None:
        links = {(CONTROLLER, node.node_id), (node.node_id, CONTROLLER)}
        if not links & self.network.cut:
            node.catch_up(self.scheduler.now_ms)

    def ask_controller(
        self,
        node: ReplicaNode,
        request: Any,
        respond: Callable[[Any], None],
        give_up: Callable[[], None] = lambda: None,
    ) -> None:
        """Send a request; one of the two is called once, unless the process ends before."""
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

        is_queued = isinstance(request, AlterPartitionRequest) and self.has_faults
        delay_ms = 0
        if is_queued and self.random.random() < self.controller_slowness:
            delay_ms = self.random.randint(1, 200)
        self.scheduler.after(delay_ms, lambda: self.send(node.node_id, CONTROLLER, (take, request)))
        self.scheduler.after(CONTROLLER_TIMEOUT_MS, time_out)

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
        """Register, or say that the broker is alive, or that it wants to stop."""
        if node.broker_epoch < 0:
            self.ask_controller(
                node, self.registration_of(node), lambda answer: self.registered(node, answer)
            )
            return
        request = self.heartbeat_of(node, node.applied if node.replica is not None else 0)
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
            self.end_cleanly(node)

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
            self.threaten_who_joins(request)
            self.ask_controller(
                node,
                request,
                lambda answer: node.take_alter_partition(answer, self.scheduler.now_ms),
                lambda: node.changes.handle_no_answer(node.now_ms(self.scheduler.now_ms)),
            )

    def threaten_who_joins(self, request: AlterPartitionRequest) -> None:
        if self.has_faults and self.random.random() < self.joiner_risk:
            wanted = request.topics[0].partitions[0].new_isr_with_epochs
            isr = [broker.broker_id for broker in wanted]
            node = self.nodes[self.random.choice(isr)]
            fault = self.random.choice([self.cut_power, self.wipe, self.pause])
            delay_ms = self.random.randint(1, 40)
            self.scheduler.after(delay_ms, lambda: fault(node) if self.has_faults else None)

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
        """Append where somebody believes to lead; who is deposed gets his share too."""
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

    # --- what goes wrong ---

    def strike(self) -> None:
        """Let one thing go wrong, or get better."""
        if not self.has_faults:
            return
        node = self.nodes[self.random.choice(self.node_ids)]
        leader = self.controller.partition.leader
        if leader != NO_LEADER and self.random.random() < 0.5:
            node = self.nodes[leader]
        fault = self.random.choice(self.faults)
        fault(node)
        self.scheduler.after(self.random.randint(1, 2 * FAULT_INTERVAL_MS), self.strike)

    def kill(self, node: ReplicaNode) -> None:
        """End the process; the page cache stays."""
        self.end(node, lambda: 0, loses_data=False)

    def kill_all(self, node: ReplicaNode) -> None:
        for other in self.nodes.values():
            self.kill(other)

    def cut_power(self, node: ReplicaNode) -> None:
        self.end(node, lambda: node.log.lose_unsynced(self.random), loses_data=True)

    def wipe(self, node: ReplicaNode) -> None:
        self.end(node, node.log.wipe, loses_data=True)

    def end(self, node: ReplicaNode, lose: Callable[[], int], *, loses_data: bool) -> None:
        may = self.checker.may_end_uncleanly(node.node_id, self.min_isr, loses_data=loses_data)
        if node.is_up and may:
            node.die()
            self.checker.note_unclean_end(node.node_id, lose())
            self.checker.check(node)
            self.restart_later(node)

    def stop(self, node: ReplicaNode) -> None:
        """Stop cleanly: when the controller lets go, or after a while without that."""
        if not node.is_up or node.is_stopping:
            return
        node.is_stopping = True
        incarnation = node.incarnation

        def give_up() -> None:
            if node.is_up and node.incarnation == incarnation:
                self.input(node, lambda: self.end_cleanly(node))

        self.scheduler.after(self.random.choice([60, 300]), give_up)

    def end_cleanly(self, node: ReplicaNode) -> None:
        if node.broker_epoch < 0:
            # It cannot leave an epoch behind that it does not know: to the controller, a crash.
            self.kill(node)
        elif node.is_up:
            node.stop_cleanly()
            self.restart_later(node)

    def flush(self, node: ReplicaNode) -> None:
        node.log.flush()

    def pause(self, node: ReplicaNode) -> None:
        if node.is_up:
            node.is_paused = True
            incarnation = node.incarnation
            delay_ms = self.random.choice([20, 120, 300])
            self.scheduler.after(delay_ms, lambda: self.resume(node, incarnation))

    def resume(self, node: ReplicaNode, incarnation: int) -> None:
        if node.is_up and node.incarnation == incarnation and node.is_paused:
            node.is_paused = False
            inbox, node.inbox = node.inbox, []
            for action in inbox:
                self.input(node, action)

    def cut_off(self, node: ReplicaNode) -> None:
        others = [other for other in [CONTROLLER, *self.node_ids] if other != node.node_id]
        inbound, outbound = self.random.choice([(True, True), (True, False), (False, True)])
        self.network.isolate(node.node_id, others, inbound=inbound, outbound=outbound)

    def cut_off_controller(self, node: ReplicaNode) -> None:
        """Let the brokers hear each other, and one not the controller, or not be heard by it."""
        inbound, outbound = self.random.choice([(True, True), (True, False), (False, True)])
        self.network.isolate(node.node_id, [CONTROLLER], inbound=inbound, outbound=outbound)

    def cut_links(self, node: ReplicaNode) -> None:
        for source in self.node_ids:
            for destination in [CONTROLLER, *self.node_ids]:
                if source != destination and self.random.random() < 0.3:
                    self.network.cut.add((source, destination))

    def heal(self, node: ReplicaNode) -> None:
        self.network.cut.clear()

    def change_weather(self, node: ReplicaNode) -> None:
        self.network.weather = self.draw_weather()

    def elect_controller(self, node: ReplicaNode) -> None:
        self.controller.elect(self.scheduler.now_ms)

    def elect_preferred(self, node: ReplicaNode) -> None:
        self.controller.elect_preferred(self.scheduler.now_ms)
        self.checker.check_controller()

    def delete_records(self, node: ReplicaNode) -> None:
        self.input(node, lambda: node.delete_records(self.scheduler.now_ms))

    # --- the history ---

    def run(self) -> None:
        for node in self.nodes.values():
            self.run_process(node)
        self.scheduler.after(1, self.produce)
        self.scheduler.after(1, self.tick_controller)
        self.scheduler.after(self.random.randint(1, 200), self.strike)
        self.scheduler.run_until(self.random.randint(FAULTS_MS // 3, FAULTS_MS))
        self.heal_everything()
        self.demand_progress()

    def heal_everything(self) -> None:
        self.has_faults = False
        self.network.cut.clear()
        self.network.weather = Weather()
        for node in self.nodes.values():
            node.fetch_max_records = 50
            if node.is_up:
                self.resume(node, node.incarnation)
            else:
                self.start(node)

    def demand_progress(self) -> None:
        """Let time pass until all are in sync, and new records are acknowledged and everywhere."""
        goal = len(self.checker.acknowledged) + 5
        limit_ms = self.scheduler.now_ms + PROGRESS_LIMIT_MS
        while self.scheduler.now_ms < limit_ms:
            self.scheduler.run_until(self.scheduler.now_ms + 20)
            is_whole = set(self.controller.partition.isr) == set(self.node_ids)
            if is_whole and len(self.checker.acknowledged) >= goal:
                return
        raise Violation(f"no progress: {self.controller.partition}")


def incarnation_id_of(node: ReplicaNode) -> bytes:
    return (node.node_id << 64 | node.incarnation).to_bytes(16, "big")
