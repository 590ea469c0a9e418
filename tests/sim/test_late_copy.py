"""A rare history: the controller refuses a change of the ISR, and later accepts a late copy.

The leader sends an AlterPartition that adds a follower, and its connection is lost. Then the
follower is fenced, so the controller refuses a second copy of the request. The follower returns as
the same incarnation, and the controller accepts the first copy: the ISR contains a follower that
lacks the records committed without it.
"""

from typing import Any

import pytest

from broker.replication.isr_changes import RETRY_BACKOFF_MS
from common.kafka.errors import ErrorCode
from tests.sim.replica_cluster import SESSION_TIMEOUT_MS, ReplicaSimulation
from tests.sim.replica_mutations import resend_unseen
from tests.sim.replica_node import ALL, ReplicaNode

SEED = next(
    seed
    for seed in range(100)
    if len((drawn := ReplicaSimulation(seed)).nodes) == 3 and drawn.min_isr == 2
)


class History:
    """Three brokers without random events."""

    def __init__(self) -> None:
        self.cluster = ReplicaSimulation(SEED)
        self.controller = self.cluster.controller
        self.now_ms = 10_000  # the clocks of all nodes are past zero
        self.leader = self.cluster.nodes[self.controller.partition.leader]
        self.kept, self.fenced = (
            node for node in self.cluster.nodes.values() if node is not self.leader
        )

    def heartbeat(self, *nodes: ReplicaNode) -> None:
        for node in nodes:
            applied = len(self.controller.records)
            self.controller.handle(self.cluster.heartbeat_of(node, applied), self.now_ms)

    def fence(self) -> None:
        """Fence one follower: it sends no heartbeat for a session timeout."""
        self.now_ms += 2 * SESSION_TIMEOUT_MS
        self.heartbeat(self.leader, self.kept)
        self.controller.tick(self.now_ms)

    def catch_up(self) -> None:
        for node in self.cluster.nodes.values():
            node.catch_up(self.now_ms)

    def fetch(self, follower: ReplicaNode) -> None:
        call: Any = follower.next_fetch(self.now_ms)
        follower.take_fetch(self.leader.serve_fetch(call, self.now_ms), self.now_ms)

    def run(self) -> bool:
        """Return True if the log of the last leader has all acknowledged records."""
        self.heartbeat(*self.cluster.nodes.values())
        self.fence()
        self.heartbeat(self.fenced)
        self.catch_up()
        for follower in (self.kept, self.fenced):
            self.fetch(follower)
        first_copy = self.leader.next_alter_partition(self.now_ms)
        assert first_copy is not None
        self.leader.changes.handle_no_answer(self.leader.now_ms(self.now_ms))
        self.fence()
        self.now_ms += 2 * RETRY_BACKOFF_MS
        refusal = self.controller.handle(self.leader.next_alter_partition(self.now_ms), self.now_ms)
        (answer,) = refusal.topics[0].partitions
        assert answer.error_code == ErrorCode.INELIGIBLE_REPLICA
        self.leader.take_alter_partition(refusal, self.now_ms)
        self.leader.produce(1, ALL, self.now_ms)
        for _ in range(2):
            self.fetch(self.kept)
        self.heartbeat(self.fenced)
        self.controller.handle(first_copy, self.now_ms)
        assert self.fenced.node_id in self.controller.partition.isr
        self.now_ms += 2 * SESSION_TIMEOUT_MS
        self.heartbeat(self.fenced)
        self.controller.tick(self.now_ms)
        assert self.controller.partition.leader == self.fenced.node_id
        acknowledged = [produced.entry for produced in self.leader.acknowledged]
        return all(entry in self.fenced.log.entries for entry in acknowledged)


def test_a_copy_that_arrives_late_loses_nothing():
    assert History().run()


def test_a_leader_that_forgets_the_copy_loses_what_it_acknowledged(monkeypatch: pytest.MonkeyPatch):
    resend_unseen(monkeypatch)
    assert not History().run()
