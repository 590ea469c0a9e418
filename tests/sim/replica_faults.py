"""The faults of a replication history, and the actions of administrators.

Processes are killed, with and without a power failure; they stop cleanly, or pause; disks are
wiped; links are cut; brokers lose the controller just long enough to be fenced; another controller
takes over. Preferred leaders are elected, partitions are reassigned, reassignments are changed and
cancelled, records are deleted, topics are deleted and created again.

Some faults have targets: a new leader, and a replica that is about to join the in-sync set.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.metadata.image import NO_LEADER
from tests.sim.network import Weather
from tests.sim.replica_node import ReplicaNode

if TYPE_CHECKING:
    from tests.sim.replica_cluster import ReplicaSimulation

CONTROLLER = 0
FAULT_INTERVAL_MS = 60

Fault = Callable[[ReplicaNode], None]


class ReplicaFaults:
    """The faults of one history, chosen by its seed."""

    def __init__(self, simulation: "ReplicaSimulation") -> None:
        self.simulation = simulation
        self.scheduler = simulation.scheduler
        self.random = random = simulation.random
        self.network = simulation.network
        self.controller = simulation.controller
        self.checker = simulation.checker
        self.nodes = simulation.nodes
        self.node_ids = simulation.node_ids
        self.young_leader_risk = random.choice([0, 0, 0.3, 0.7])
        """How often a new leader fails soon, which tests what it has not heard of then."""
        self.joiner_risk = random.choice([0, 0.3, 0.7])
        self.probe_chance = random.choice([0, 0.8])
        self.held_ms = random.choice([200, 450])
        """The longest delay of a change of the in-sync set; REQUEST_LIFETIME_MS is longer."""
        self.aims_at_joiners = random.random() < 0.25
        """True if this history is mostly about replicas that join and leave."""
        self.replaces_joiners = random.random() < 0.5
        if self.aims_at_joiners:
            self.joiner_risk, self.held_ms, self.probe_chance = 0.9, 450, 0.8
            simulation.controller_slowness = 0.6
        self.aims_at_late_readers = not self.aims_at_joiners and random.random() < 0.25
        """True if leaders change while the other brokers learn of it late and one by one."""
        if self.aims_at_late_readers:
            simulation.metadata_pieces = 1.0
            simulation.metadata_delay_ms = random.choice([30, 60])
        self.chosen = self.draw()
        self.change_weather()

    def draw(self) -> list[Fault]:
        """Choose the faults of this history: some faults hide others."""
        if self.aims_at_joiners:
            return [self.fence_for_a_while, self.flush]
        if self.aims_at_late_readers:
            return [
                self.cut_off_controller,
                self.elect_preferred,
                self.fence_for_a_while,
                self.heal,
            ]
        faults: list[Fault] = [
            self.kill,
            self.kill_all,
            self.cut_power,
            self.cut_power,
            self.wipe,
            self.replace,
            self.stop,
            self.flush,
            self.pause,
            self.cut_off,
            self.cut_off_controller,
            self.fence_for_a_while,
            self.cut_links,
            self.change_weather,
            self.elect_controller,
            self.elect_preferred,
            self.delete_records,
            self.reassign,
            self.cancel_reassignment,
            self.recreate_topic,
        ]
        chosen = self.random.sample(faults, self.random.randint(2, len(faults)))
        return [*chosen, self.heal, self.heal]

    @property
    def is_active(self) -> bool:
        return self.simulation.has_faults

    def strike(self) -> None:
        """Cause or heal one fault."""
        if not self.is_active:
            return
        node = self.nodes[self.random.choice(self.node_ids)]
        leader = self.controller.partition.leader
        if leader != NO_LEADER and not self.aims_at_joiners and self.random.random() < 0.5:
            node = self.nodes[leader]
        fault = self.random.choice(self.chosen)
        fault(node)
        self.scheduler.after(self.random.randint(1, 2 * FAULT_INTERVAL_MS), self.strike)

    def threaten_leader(self, leader: ReplicaNode) -> None:
        is_aimed = self.aims_at_joiners or self.aims_at_late_readers
        if self.random.random() < self.young_leader_risk and not is_aimed:
            fault = self.random.choice(
                [self.kill, self.cut_power, self.stop, self.cut_off, self.elect_preferred]
            )
            self.strike_soon(fault, leader, self.random.randint(1, 60))

    def threaten_who_joins(self, leader: ReplicaNode, wanted: list[int]) -> None:
        """Cause a fault of a replica in a requested in-sync set, most often of a new one."""
        if not self.is_active or self.random.random() >= self.joiner_risk:
            return
        new = [replica for replica in wanted if replica not in self.controller.partition.isr]
        node = self.nodes[self.random.choice(new or wanted)]
        faults = [self.cut_power, self.wipe, self.pause]
        if self.aims_at_joiners:
            faults = [self.replace if self.replaces_joiners else self.fence_for_a_while]
        fault = self.random.choice(faults)
        self.strike_soon(fault, node, self.random.randint(1, 40))

    def strike_soon(self, fault: Fault, node: ReplicaNode, delay_ms: int) -> None:
        self.scheduler.after(delay_ms, lambda: fault(node) if self.is_active else None)

    # --- processes and disks ---

    def kill(self, node: ReplicaNode) -> None:
        """Kill the process; the page cache survives."""
        self.end(node, lambda: 0, loses_data=False)

    def kill_all(self, node: ReplicaNode) -> None:
        for other in self.nodes.values():
            self.kill(other)

    def cut_power(self, node: ReplicaNode) -> None:
        self.end(node, lambda: node.log.lose_unsynced(self.random), loses_data=True)

    def wipe(self, node: ReplicaNode) -> None:
        self.end(node, node.wipe, loses_data=True)

    def replace(self, node: ReplicaNode) -> None:
        """Give a broker another disk; the controller learns of it before the leader."""
        leader = self.controller.partition.leader
        if leader not in {NO_LEADER, node.node_id}:
            links = {(node.node_id, leader), (leader, node.node_id)}
            self.network.cut |= links
            delay_ms = self.random.randint(100, 400)
            self.scheduler.after(delay_ms, lambda: self.network.cut.difference_update(links))
        self.wipe(node)

    def end(self, node: ReplicaNode, lose: Callable[[], int], *, loses_data: bool) -> None:
        may = self.checker.may_end_uncleanly(node.node_id, loses_data=loses_data)
        if node.is_up and may:
            node.die()
            self.checker.note_unclean_end(node.node_id, lose())
            self.checker.check(node)
            self.simulation.restart_later(node)
            if self.random.random() < self.probe_chance:
                self.scheduler.after(self.random.randint(1, 10), lambda: self.probe(node))

    def probe(self, node: ReplicaNode) -> None:
        """Fence a broker at once whose process is seen to have ended."""
        if not node.is_up:
            self.controller.lose_broker(node.node_id, self.scheduler.now_ms)
            self.checker.check_controller()

    def stop(self, node: ReplicaNode) -> None:
        """Stop cleanly: when the controller allows it, or after a while."""
        if not node.is_up or node.is_stopping:
            return
        node.is_stopping = True
        incarnation = node.incarnation

        def give_up() -> None:
            if node.is_up and node.incarnation == incarnation:
                self.simulation.input(node, lambda: self.end_cleanly(node))

        self.scheduler.after(self.random.choice([60, 300]), give_up)

    def end_cleanly(self, node: ReplicaNode) -> None:
        if node.broker_epoch < 0:
            # It does not know its epoch and cannot write it, so the controller sees a crash.
            self.kill(node)
        elif node.is_up:
            node.stop_cleanly()
            self.simulation.restart_later(node)

    def flush(self, node: ReplicaNode) -> None:
        if node.is_up:
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
                self.simulation.input(node, action)

    # --- the network ---

    def cut_off(self, node: ReplicaNode) -> None:
        others = [other for other in [CONTROLLER, *self.node_ids] if other != node.node_id]
        inbound, outbound = self.random.choice([(True, True), (True, False), (False, True)])
        self.network.isolate(node.node_id, others, inbound=inbound, outbound=outbound)

    def cut_off_controller(self, node: ReplicaNode) -> None:
        """Cut a broker's links to or from the controller, but not those to other brokers."""
        inbound, outbound = self.random.choice([(True, True), (True, False), (False, True)])
        self.network.isolate(node.node_id, [CONTROLLER], inbound=inbound, outbound=outbound)

    def fence_for_a_while(self, node: ReplicaNode) -> None:
        """Let a broker's session end, and let the same incarnation return at once."""
        link = (node.node_id, CONTROLLER)
        self.network.cut.add(link)
        delay_ms = self.random.randint(100, 350)
        self.scheduler.after(delay_ms, lambda: self.network.cut.discard(link))

    def cut_links(self, node: ReplicaNode) -> None:
        for source in self.node_ids:
            for destination in [CONTROLLER, *self.node_ids]:
                if source != destination and self.random.random() < 0.3:
                    self.network.cut.add((source, destination))

    def heal(self, node: ReplicaNode) -> None:
        self.network.cut.clear()

    def change_weather(self, node: ReplicaNode | None = None) -> None:
        if self.aims_at_joiners:
            return
        random = self.random
        self.network.weather = Weather(
            loss=random.choice([0, 0, 0.02, 0.2]),
            duplication=random.choice([0, 0.02, 0.2]),
            slowness=random.choice([0, 0.05, 0.3]),
            slow_ms=random.choice([80, 250, 250]),
        )

    def heal_everything(self) -> None:
        self.network.cut.clear()
        self.network.weather = Weather()
        for node in self.nodes.values():
            self.resume(node, node.incarnation)

    # --- the controller and administrators ---

    def elect_controller(self, node: ReplicaNode) -> None:
        self.controller.elect(self.scheduler.now_ms)

    def elect_preferred(self, node: ReplicaNode) -> None:
        self.controller.elect_preferred(self.scheduler.now_ms)
        self.checker.check_controller()

    def delete_records(self, node: ReplicaNode) -> None:
        self.simulation.input(node, lambda: node.delete_records(self.scheduler.now_ms))

    def reassign(self, node: ReplicaNode) -> None:
        """Start or change a reassignment: to more, fewer, or other replicas."""
        count = self.random.randint(1, len(self.node_ids))
        self.move(self.random.sample(self.node_ids, count))

    def cancel_reassignment(self, node: ReplicaNode) -> None:
        self.move(None)

    def move(self, target: list[int] | None) -> None:
        if self.checker.may_move():
            self.controller.reassign(target, self.scheduler.now_ms)
            self.checker.check_controller()

    def recreate_topic(self, node: ReplicaNode) -> None:
        """Delete the topic and create it with another id, perhaps before any broker has read it."""
        self.controller.delete_topic(self.scheduler.now_ms)
        self.checker.check_controller()
        delay_ms = self.random.choice([0, 30, 150])
        self.scheduler.after(delay_ms, self.create_topic)

    def create_topic(self) -> None:
        """Create the topic again, as soon as there are enough brokers."""
        if self.controller.topic is None:
            self.simulation.create_topic()
            self.checker.check_controller()
            self.scheduler.after(50, self.create_topic)
