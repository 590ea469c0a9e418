"""Elections that nobody asks for: preferred replicas lead again, unclean ones where allowed."""

import pytest

from broker.metadata.control.leadership import periodic_elections
from broker.metadata.control.sessions import NEVER_MS
from broker.metadata.parts.topics import RECOVERING
from tests.broker.metadata.test_leadership import set_config, set_isr
from tests.lib.controlled_cluster import ControlledCluster

CHECK_MS = 300_000


def pass_time(cluster: ControlledCluster, after_ms: int, *alive: int) -> None:
    """Let time pass while these brokers go on sending heartbeats."""
    end_ms = cluster.now_ms + after_ms
    while cluster.now_ms < end_ms:
        step_ms = min(5_000, end_ms - cluster.now_ms)
        cluster.tick(step_ms)
        for broker_id in alive:
            cluster.heartbeat(broker_id)


def led_by_another(count: int = 1, **config: int) -> ControlledCluster:
    """Broker 1 is back in the in-sync sets, and broker 2 still leads what it took over."""
    cluster = ControlledCluster(1, 2, **config)
    for index in range(count):
        cluster.create(f"orders-{index}", [1, 2])
    cluster.lose(1)
    cluster.heartbeat(1)
    for index in range(count):
        assert set_isr(cluster, f"orders-{index}", [2, 1]).error_code == 0
        assert cluster.partition(f"orders-{index}").leader == 2
    return cluster


def test_the_preferred_replica_leads_again_at_the_next_check() -> None:
    cluster = led_by_another()
    pass_time(cluster, CHECK_MS - 1_000, 1, 2)
    assert cluster.partition("orders-0").leader == 2
    pass_time(cluster, 1_000, 1, 2)
    assert cluster.partition("orders-0").leader == 1
    before = len(cluster.log)
    pass_time(cluster, 2 * CHECK_MS, 1, 2)
    assert len(cluster.log) == before


def test_a_preferred_replica_that_is_not_in_sync_does_not_lead() -> None:
    cluster = ControlledCluster(1, 2)
    cluster.create("orders", [1, 2])
    cluster.lose(1)
    cluster.heartbeat(1)
    pass_time(cluster, CHECK_MS, 1, 2)
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (2, (2,))


def test_leaderships_stay_where_they_are_when_that_is_turned_off() -> None:
    cluster = led_by_another(leader_imbalance_check_interval_ms=0)
    pass_time(cluster, 2 * CHECK_MS, 1, 2)
    assert cluster.partition("orders-0").leader == 2


def test_many_elections_are_several_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic_elections, "MAX_ELECTIONS", 2)
    cluster = led_by_another(5)
    pass_time(cluster, CHECK_MS, 1)
    assert [cluster.partition(f"orders-{index}").leader for index in range(5)] == [1] * 5
    assert len(cluster.last_records) <= 2


def test_an_unclean_election_follows_at_once_when_it_is_allowed() -> None:
    cluster = ControlledCluster(1, 2)
    cluster.create("orders", [1, 2])
    assert set_isr(cluster, "orders", [1]).error_code == 0
    cluster.lose(1)
    assert cluster.partition("orders").leader == -1
    set_config(cluster, "orders", "unclean.leader.election.enable", "true")
    cluster.tick()
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr) == (2, (2,))
    assert partition.leader_recovery_state == RECOVERING


def test_a_cluster_of_one_broker_wakes_nobody() -> None:
    cluster = ControlledCluster(own_incarnation_id=(1).to_bytes(16, "big"))
    cluster.start(1)
    assert cluster.controller.next_deadline_ms() == NEVER_MS
    cluster.start(2)
    assert cluster.controller.next_deadline_ms() < NEVER_MS
