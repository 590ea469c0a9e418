"""A seeded history of a quorum whose voters come and go, under the faults of `quorum_cluster`.

Some of the controllers are formatted as voters, the others without any. An operator adds and
removes voters, the leader too, one request after the other whatever the answers are; some
controllers join by themselves; disks are lost, and the node comes back as another replica. A disk
is only lost while the committed records stay on a majority of the voters' disks: Raft promises
nothing else. In some histories controllers come back at another port, perhaps at one that another
controller had, all of them if it happens so. The names of bootstrap servers follow them.

Checked besides what `quorum_checks` checks: consecutive committed voter sets differ by one voter,
or by the endpoint of one; an endpoint is never replaced by an older one, and at the end all are
the current ones; every node counts by the newest voter set of its log, after a restart from a
snapshot too; a change that was answered without an error is committed; no removed leader leads on
after the commit.
"""

from dataclasses import replace

from broker.raft.config import RaftConfig, majority_of
from broker.raft.output import Envelope
from broker.raft.voter_history import VoterHistory, read_entries
from broker.raft.voter_messages import (
    KRAFT_VERSION,
    VoterRequest,
    VoterResponse,
    add_voter_request,
    remove_voter_request,
)
from broker.raft.voter_set import KRAFT_VERSIONS, Endpoint, ReplicaKey, VoterNode, VoterSet
from broker.records.batch import RecordBatch
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SupportedFeatureKey,
)
from tests.sim.quorum_checks import Checker, Ledger, Violation
from tests.sim.quorum_cluster import (
    CLUSTER_ID,
    FAULT_INTERVAL_MS,
    PROGRESS_LIMIT_MS,
    QuorumSimulation,
)
from tests.sim.quorum_node import SimulatedNode

LISTENER = "CONTROLLER"
HOST = "node"
NAME = "name"
"""The host of a bootstrap server: a name that follows the node to its current port."""
OPERATOR = -1
CHANGE_INTERVAL_MS = 150
MOVE_INTERVAL_MS = 300


class VoterLedger(Ledger):
    """The committed log, and the voter sets in it by their offset."""

    def __init__(self, formatted: VoterSet, ports: dict[int, list[int]]) -> None:
        super().__init__()
        self.voters: list[tuple[int, VoterSet]] = [(-1, formatted)]
        self.ports = ports
        """By node, the ports that it has had; the last one is the current one."""

    def add(self, batch: RecordBatch) -> None:
        super().add(batch)
        for offset, value in read_entries(batch.buffer):
            if isinstance(value, VoterSet):
                self._check_change(self.voters[-1][1], value)
                self.voters.append((offset, value))

    def _check_change(self, former: VoterSet, voters: VoterSet) -> None:
        changes = len(set(former.keys) ^ set(voters.keys))
        for node in voters.nodes:
            before = former.find(node.key.node_id)
            if before is not None and before.key == node.key and port_of(before) != port_of(node):
                changes += 1
                ports = self.ports[node.key.node_id]
                if ports.index(port_of(node)) < ports.index(port_of(before)):
                    raise Violation(f"{node} is older than {before}")
        if changes > 1:
            raise Violation(f"voters {voters.nodes} follow {former.nodes}")

    def voters_at(self, end_offset: int) -> VoterSet:
        """Give the voters by the records below an offset."""
        below = max(end_offset, 0)
        return next(voters for offset, voters in reversed(self.voters) if offset < below)


class VoterChecker(Checker):
    """Checks the voter sets too; `lost` has what a lost disk held, by the replica's identity."""

    def __init__(
        self, nodes: dict[int, SimulatedNode], formatted: VoterSet, ports: dict[int, list[int]]
    ) -> None:
        super().__init__(nodes, formatted.ids)
        self.ledger = VoterLedger(formatted, ports)
        self.lost: dict[ReplicaKey, int] = {}
        self.change_count = 0

    def forget(self, node: SimulatedNode) -> None:
        """Note that a node's disk is lost; its next process is another replica."""
        node_id = node.node_id
        self.lost[node.config.key] = min(self.verified[node_id], node.durable_offset)
        self.verified[node_id] = 0
        self.epochs.pop(node_id, None)
        self.incarnations.pop(node_id, None)
        for vote in [each for each in self.votes if each[0] == node_id]:
            del self.votes[vote]

    def _check(self, node: SimulatedNode) -> None:
        super()._check(node)
        if node.is_up:
            self._check_voters(node)

    def _check_voters(self, node: SimulatedNode) -> None:
        end = min(self.verified[node.node_id], self.ledger.end_offset)
        if end >= node.log.start_offset and end:
            _, voters = node.node.voters_at(end)
            if voters.keys != self.ledger.voters_at(end).keys:
                raise Violation(f"node {node.node_id} counts by {voters} at {end}")
        is_voter = node.node.voters.is_voter(node.config.key)
        if node.node.is_leader and not is_voter and not node.node.has_uncommitted_voters:
            raise Violation(f"node {node.node_id} was removed and leads on")

    def durable(self, key: ReplicaKey) -> int:
        """Give the end of the committed records on a replica's disk."""
        node = self.nodes[key.node_id]
        if node.config.key != key:
            return self.lost.get(key, 0)
        return min(self.verified[key.node_id], node.durable_offset)

    def voter_sets(self) -> list[VoterSet]:
        """Give the sets that may count: the committed one, and the newest of each node."""
        found = [self.ledger.voters[-1][1]]
        for node in self.nodes.values():
            if node.is_up:
                found.append(node.node.voters)
            else:
                with node.undisturbed():
                    found.append(VoterHistory(VoterSet(), node.log).voters)
        return [voters for voters in found if voters.nodes]

    def _check_majority(self) -> None:
        """Check that every majority of the voters has the committed records on a disk.

        They may have been committed by a later voter set, which another leader has taken back: its
        majorities have a node in each majority of the one before, but may be smaller.
        """
        end = self.ledger.end_offset
        for voters in self.voter_sets():
            without = sum(self.durable(key) < end for key in voters.keys)
            if without < majority_of(len(voters.nodes)):
                return
        raise Violation(f"committed up to {end}, and a majority does not have it")

    def note_answer(self, request: VoterRequest, response: VoterResponse) -> None:
        """Check an answer to the operator: without an error the change is committed."""
        if response.error_code != ErrorCode.NONE:
            return
        self.change_count += 1
        key = ReplicaKey(request.voter_id, request.voter_directory_id)
        is_added = request.__api_key__ == 80
        if not any((key in voters.keys) == is_added for _, voters in self.ledger.voters):
            raise Violation(f"answered, and not committed: {request}")


def port_of(voter: VoterNode) -> int:
    return voter.endpoints[0].port


class ChangingQuorum(QuorumSimulation):
    """One history; `run` raises the first violation."""

    def __init__(self, seed: int) -> None:
        self.generations: dict[int, int] = {}
        self.formatted = VoterSet()
        self.requests: dict[int, VoterRequest] = {}
        self.addressed: dict[tuple[int, int], int] = {}
        self.ports: dict[int, list[int]] = {}
        self.move_count = 0
        super().__init__(seed)
        controller_count = self.random.choice([3, 4, 5, 6])
        voter_count = self.random.choice([1, 2, 3, 3])
        self.controllers = list(range(1, controller_count + 1))
        self.node_ids = [*self.controllers, *([101] if self.random.random() < 0.5 else [])]
        self.joins = self.random.random() < 0.3
        self.ports = {node_id: [node_id] for node_id in self.node_ids}
        self.moves = self.random.random() < 0.5
        self.calmness = self.random.choice([0, 0.6, 0.9])
        """The share of faults that are left out, so that more changes succeed."""
        self.formatted = VoterSet(
            tuple(self.voter(node_id) for node_id in range(1, voter_count + 1))
        )
        self.nodes = {node_id: self.new_node(node_id) for node_id in self.node_ids}
        for node_id in self.formatted.ids:
            self.nodes[node_id].format(self.formatted)
        self.checker = VoterChecker(self.nodes, self.formatted, self.ports)

    def voter(self, node_id: int) -> VoterNode:
        endpoint = Endpoint(LISTENER, HOST, self.ports.get(node_id, [node_id])[-1])
        return VoterNode(
            ReplicaKey(node_id, self.directory_id(node_id)), (endpoint,), KRAFT_VERSIONS
        )

    def directory_id(self, node_id: int) -> bytes:
        generation = self.generations.get(node_id, 0)
        return b"dir" + node_id.to_bytes(5, "big") + generation.to_bytes(8, "big")

    def new_node(self, node_id: int) -> SimulatedNode:
        return SimulatedNode(self.config_of(node_id), self.random.randrange(1 << 30), self.send)

    def config_of(self, node_id: int) -> RaftConfig:
        base = super().config_of(node_id)
        servers = tuple((NAME, each) for each in getattr(self, "controllers", ()))
        is_controller = node_id < 101
        return RaftConfig(
            **{name: getattr(base, name) for name in RaftConfig.__dataclass_fields__}
            | {
                "voters": VoterSet(),
                "directory_id": self.directory_id(node_id),
                "endpoints": self.voter(node_id).endpoints if is_controller else (),
                "bootstrap_servers": servers,
                "is_controller": is_controller,
                "joins_by_itself": is_controller and getattr(self, "joins", False),
            }
        )

    # Addresses, as the connections of the shell know them.

    def send(self, envelope: Envelope) -> None:
        """Send a request to the address that its sender knows, and an answer to its asker."""
        source, destination, correlation_id, message = envelope
        if destination == OPERATOR:
            self.checker.note_answer(self.requests.pop(correlation_id), message)
            return
        if isinstance(message, VoterResponse) or type(message).__name__.endswith("Response"):
            self.network.send(envelope)
            return
        address = self.nodes[source].node.endpoint_of(destination)
        reached = None if address is None else self.node_at(*address)
        if reached is None:
            self.refuse(envelope)
        elif reached != source:
            self.addressed[source, correlation_id] = destination
            self.network.send(envelope._replace(destination=reached))

    def node_at(self, host: str, port: int) -> int | None:
        """Give the node that listens there; None if none does."""
        if host == NAME:
            return port
        return next((node_id for node_id, ports in self.ports.items() if ports[-1] == port), None)

    def refuse(self, envelope: Envelope) -> None:
        """Tell a node, a moment later, that its connection was refused."""
        node = self.nodes[envelope.source]
        incarnation = node.incarnation

        def tell() -> None:
            node.driver.take(node.node.fail(envelope, self.scheduler.now_ms))

        def arrive() -> None:
            if node.is_up and node.incarnation == incarnation:
                self.input(node, tell)
                self.input(node, lambda: self.tell_lost(node, envelope.destination))

        self.scheduler.after(1, arrive)

    def deliver(self, envelope: Envelope) -> None:
        source, destination, correlation_id, message = envelope
        if isinstance(message, VoterRequest) and source != OPERATOR:
            described = getattr(message, "listeners", None)
            if described and described[0].port != self.ports[source][-1]:
                # The connection has ended with the process that was at that port.
                return
        if isinstance(message, ApiVersionsRequest):
            if self.nodes[destination].is_up:
                self.network.send(Envelope(destination, source, correlation_id, _versions()))
            return
        if type(message).__name__.endswith("Response"):
            asked = self.addressed.get((destination, correlation_id), source)
            envelope = envelope._replace(source=asked)
        super().deliver(envelope)

    # The operator, and disks that are lost.

    def change_voters(self) -> None:
        """Ask a leader to add or to remove a voter."""
        if self.has_faults:
            self.scheduler.after(self.random.randint(1, 2 * CHANGE_INTERVAL_MS), self.change_voters)
        leaders = [n for n in self.nodes.values() if n.is_up and n.node.is_leader]
        if not leaders:
            return
        node = self.random.choice(leaders)
        voters = node.node.voters
        others = [each for each in self.controllers if each not in voters.ids]
        gone = [key for key in voters.keys if self.nodes[key.node_id].config.key != key]
        if gone:
            request: VoterRequest = remove_voter_request(CLUSTER_ID, gone[0])
        elif others and (len(voters.nodes) == 1 or self.random.random() < 0.6):
            added = self.voter(self.random.choice(others))
            request = add_voter_request(CLUSTER_ID, 1_000, added, ack_when_committed=True)
        else:
            request = remove_voter_request(CLUSTER_ID, self.random.choice(voters.keys))
        number = self.scheduler.event_count
        self.requests[number] = request
        envelope = Envelope(OPERATOR, node.node_id, number, request)
        self.input(node, lambda: node.step(envelope, self.scheduler.now_ms))

    def lose_disk(self, node: SimulatedNode) -> None:
        """Replace a node's disk, if the committed records stay on a majority of the others."""
        key, checker = node.config.key, self.checker
        if node.node_id not in self.controllers:
            return
        for voters in checker.voter_sets():
            rest = [each for each in voters.keys if each != key]
            holders = sum(checker.durable(each) >= checker.ledger.end_offset for each in rest)
            is_gone = any(self.nodes[each.node_id].config.key != each for each in rest)
            is_voter = len(rest) < len(voters.nodes)
            if is_voter and (is_gone or holders < majority_of(len(voters.nodes))):
                return
        if node.is_up:
            node.crash(keep_unsynced=False)
        checker.forget(node)
        self.generations[node.node_id] = self.generations.get(node.node_id, 0) + 1
        self.nodes[node.node_id] = self.new_node(node.node_id)
        self.nodes[node.node_id].incarnation = node.incarnation + 1
        self.restart_later(self.nodes[node.node_id])

    def strike(self) -> None:
        if self.has_faults and self.random.random() < self.calmness:
            self.scheduler.after(self.random.randint(1, 2 * FAULT_INTERVAL_MS), self.strike)
        else:
            super().strike()

    def crash(self, node: SimulatedNode) -> None:
        super().crash(node)
        if self.has_faults and not node.is_up and self.random.random() < 0.15:
            self.lose_disk(node)

    def move_one(self) -> None:
        """Kill a controller, which may come back at another port."""
        if self.has_faults:
            self.scheduler.after(self.random.randint(1, 2 * MOVE_INTERVAL_MS), self.move_one)
            node = self.nodes[self.random.choice(self.controllers)]
            super().crash(node)
            if not node.is_up:
                self.move(node)

    def move(self, node: SimulatedNode) -> None:
        """Let a controller come back at another port."""
        node_id = node.node_id
        taken = {ports[-1] for ports in self.ports.values()} | set(self.ports[node_id])
        free = [port for port in range(1, 4 * len(self.node_ids)) if port not in taken]
        if not free:
            return
        self.move_count += 1
        self.ports[node_id].append(self.random.choice(free))
        node.config = replace(node.config, endpoints=self.voter(node_id).endpoints)

    def restart_later(self, node: SimulatedNode) -> None:
        delay_ms = self.random.choice([1, 20, 150, 600])
        node_id = node.node_id
        self.scheduler.after(delay_ms, lambda: self.start(self.nodes[node_id]))

    # The history.

    def run(self, *, is_liveness: bool = False) -> None:
        self.scheduler.after(self.random.randint(1, 300), self.change_voters)
        if self.moves:
            self.scheduler.after(self.random.randint(1, 2 * MOVE_INTERVAL_MS), self.move_one)
        super().run(is_liveness=is_liveness)
        self.demand_endpoints()

    def demand_endpoints(self) -> None:
        """Run until the committed voters are where the voter set says."""
        limit_ms = self.scheduler.now_ms + PROGRESS_LIMIT_MS
        while self.scheduler.now_ms < limit_ms:
            voters = self.checker.ledger.voters[-1][1]
            current = [
                node for node in voters.nodes if self.nodes[node.key.node_id].config.key == node.key
            ]
            if all(self.ports[node.key.node_id][-1] == port_of(node) for node in current):
                return
            self.scheduler.run_until(self.scheduler.now_ms + 50)
        raise Violation(f"the voters {voters.nodes} are at {self.ports}")

    def keep_only_a_core(self) -> None:
        """Heal every node that is a voter by any node's log; the faults of the others stay."""
        ids = {key.node_id for voters in self.checker.voter_sets() for key in voters.keys}
        self.voters = tuple(sorted(ids))
        self.heal_core(self.voters)


def _versions() -> ApiVersionsResponse:
    lowest, highest = KRAFT_VERSIONS
    feature = SupportedFeatureKey(name=KRAFT_VERSION, min_version=lowest, max_version=highest)
    return ApiVersionsResponse(supported_features=[feature])
