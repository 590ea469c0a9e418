"""Brokers come, are heard of, are fenced and go; their partitions follow."""

import pytest

from broker.metadata.controller import NEVER_MS
from common.kafka.errors import ErrorCode
from tests.lib.controlled_cluster import ControlledCluster


def test_a_new_broker_is_fenced_until_its_heartbeat_has_read_its_registration() -> None:
    cluster = ControlledCluster()
    answer = cluster.register(1)
    assert answer.broker_epoch == cluster.broker(1).epoch == len(cluster.log) - 1
    assert cluster.broker(1).is_fenced
    behind = cluster.heartbeat(1, current_metadata_offset=answer.broker_epoch - 1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    assert cluster.broker(1).is_fenced
    waiting = cluster.heartbeat(1, want_fence=True)
    assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
    assert not cluster.heartbeat(1).is_fenced
    assert not cluster.broker(1).is_fenced


def test_a_heartbeat_that_changes_nothing_writes_nothing() -> None:
    cluster = ControlledCluster(1)
    before = len(cluster.log)
    cluster.heartbeat(1)
    assert len(cluster.log) == before


def test_a_session_that_ends_fences_the_broker_and_takes_its_leaderships() -> None:
    cluster = ControlledCluster(1, 2, session_timeout_ms=9_000)
    cluster.create("orders", [1, 2])
    cluster.create("alone", [1])
    assert cluster.controller.next_deadline_ms() == cluster.now_ms + 9_001
    cluster.now_ms += 9_000
    cluster.heartbeat(2)
    cluster.tick()
    assert not cluster.broker(1).is_fenced
    cluster.tick(after_ms=1)
    assert cluster.broker(1).is_fenced
    moved, alone = cluster.partition("orders"), cluster.partition("alone")
    assert (moved.leader, moved.isr, moved.leader_epoch) == (2, (2,), 1)
    # The only in-sync replica stays in sync: no other replica has the committed records.
    assert (alone.leader, alone.isr, alone.leader_epoch) == (-1, (1,), 1)


def test_a_broker_that_comes_back_leads_what_nobody_leads() -> None:
    cluster = ControlledCluster(1)
    cluster.create("orders", [1])
    cluster.lose(1)
    assert cluster.partition("orders").leader == -1
    cluster.heartbeat(1)
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr, partition.leader_epoch) == (1, (1,), 2)


def test_losing_a_broker_that_is_fenced_or_unknown_writes_nothing() -> None:
    cluster = ControlledCluster(1)
    cluster.lose(1)
    before = len(cluster.log)
    cluster.lose(1)
    cluster.lose(7)
    assert len(cluster.log) == before
    assert cluster.controller.next_deadline_ms() == NEVER_MS


def test_a_used_id_is_refused_to_another_process_as_long_as_the_first_is_alive() -> None:
    cluster = ControlledCluster(1)
    assert cluster.register(1, 2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.register(1, 1).error_code == 0
    cluster.now_ms += 9_001
    epoch = cluster.broker(1).epoch
    assert cluster.register(1, 2).broker_epoch > epoch


def test_registering_the_same_incarnation_again_keeps_its_epoch_and_its_state() -> None:
    cluster = ControlledCluster(1)
    epoch = cluster.broker(1).epoch
    assert cluster.register(1, rack="a").broker_epoch == epoch
    assert not cluster.broker(1).is_fenced
    assert cluster.broker(1).rack == "a"


def test_the_broker_in_the_controllers_process_comes_again_at_once_and_needs_no_session() -> None:
    cluster = ControlledCluster(1, own_incarnation_id=(2).to_bytes(16, "big"))
    cluster.create("orders", [1])
    cluster.elect_controller()
    assert cluster.register(1, 3).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert cluster.register(1, 2).error_code == 0
    assert (cluster.broker(1).is_fenced, cluster.partition("orders").leader) == (True, -1)
    cluster.heartbeat(1)
    assert cluster.partition("orders").leader == 1
    assert cluster.controller.next_deadline_ms() == NEVER_MS
    cluster.tick(after_ms=1_000_000)
    assert not cluster.broker(1).is_fenced
    assert cluster.register(1, 3).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.elect_controller()
    assert cluster.controller.next_deadline_ms() == NEVER_MS
    cluster.lose(1)
    assert cluster.broker(1).is_fenced


def test_the_node_that_led_before_has_been_silent_since_it_last_answered() -> None:
    heard: list[tuple[int, int]] = []
    cluster = ControlledCluster(
        1, 2, session_timeout_ms=9_000, heard_leader=lambda: heard[-1] if heard else None
    )
    heard.append((2, cluster.now_ms))
    cluster.now_ms += 3_000
    cluster.elect_controller()
    cluster.now_ms += 6_001
    cluster.heartbeat(1)
    cluster.tick()
    assert [broker.is_fenced for broker in cluster.image.brokers.values()] == [False, True]
    # However long nobody led: it has half of its session to find the new controller.
    cluster.start(2)
    cluster.now_ms += 60_000
    cluster.elect_controller()
    cluster.now_ms += 4_000
    cluster.heartbeat(1)
    cluster.tick()
    assert not cluster.image.brokers[2].is_fenced


def test_a_new_controller_gives_every_unfenced_broker_a_whole_session() -> None:
    cluster = ControlledCluster(1, session_timeout_ms=9_000)
    cluster.now_ms += 8_000
    cluster.elect_controller()
    cluster.tick(after_ms=8_000)
    assert not cluster.broker(1).is_fenced
    assert cluster.register(1, 2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.tick(after_ms=1_001)
    assert cluster.broker(1).is_fenced


@pytest.mark.parametrize(("broker_id", "epoch"), [(1, 999), (7, 0)])
def test_a_heartbeat_of_another_epoch_or_an_unknown_broker_is_stale(
    broker_id: int, epoch: int
) -> None:
    cluster = ControlledCluster(1)
    answer = cluster.heartbeat(broker_id, broker_epoch=epoch)
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_controlled_shutdown_moves_leaderships_first_and_waits_until_others_know() -> None:
    cluster = ControlledCluster(1, 2)
    cluster.create("orders", [1, 2])
    stopping = cluster.heartbeat(1, want_shut_down=True)
    assert (stopping.should_shut_down, stopping.is_fenced) == (False, False)
    assert cluster.broker(1).is_in_controlled_shutdown
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (2, (2,))
    moved_at = len(cluster.log) - 1
    cluster.heartbeat(2, current_metadata_offset=moved_at - 1)
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.heartbeat(2, current_metadata_offset=moved_at)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert cluster.broker(1).is_fenced


def test_a_broker_that_leads_nothing_stops_at_once() -> None:
    cluster = ControlledCluster(1, 2)
    assert cluster.heartbeat(2, want_shut_down=True).should_shut_down
    assert cluster.broker(2).is_fenced


def test_a_fenced_broker_stops_at_once() -> None:
    cluster = ControlledCluster()
    cluster.register(1)
    assert cluster.heartbeat(1, want_shut_down=True).should_shut_down


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [b"a" * 16, b"a" * 16]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [bytes(16)]}, ErrorCode.INVALID_REGISTRATION),
        ({"log_dirs": [b"directory %06d" % 1]}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.UNSUPPORTED_VERSION),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ],
)
def test_a_registration_that_cannot_be_is_refused(more: dict[str, object], code: int) -> None:
    cluster = ControlledCluster(1, cluster_id="ours")
    before = len(cluster.log)
    assert cluster.register(2, **more).error_code == code
    assert len(cluster.log) == before
