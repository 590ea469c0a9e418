"""Static members (KIP-345): they come back under a new id and keep what they had."""

from broker.coordinator.classic_group.classic_group import GroupState
from broker.coordinator.group_state.config import GroupConfig
from common.kafka.errors import ErrorCode
from tests.lib.group_scenario import Scenario, protocols


def static_pair(scenario, **options):
    """Two static members, stable; the first leads."""
    clients = [scenario.client(instance_id=name, **options) for name in ("a", "b")]
    for client in clients:
        client.join()
    scenario.advance(6_000)
    scenario.sync_all(clients)
    return clients


def restarted(scenario, client, **options):
    """The same instance as a new process."""
    return scenario.client(instance_id=client.instance_id, **options)


def test_a_static_member_joins_without_asking_for_an_id_first():
    scenario = Scenario()
    client = scenario.client(instance_id="a")
    client.send_join()
    assert client.is_waiting_to_join
    scenario.advance(3_000)
    assert client.joined().member_id.startswith("a-")


def test_a_restarted_follower_goes_on_without_a_rebalance():
    scenario = Scenario()
    leader, follower = static_pair(scenario)
    successor = restarted(scenario, follower)
    successor.join()
    assert successor.joined().generation_id == 1
    assert successor.member_id != follower.member_id
    successor.sync()
    assert successor.synced() == follower.assignment
    assert leader.heartbeat() is ErrorCode.NONE
    assert scenario.group.state is GroupState.STABLE


def test_the_predecessor_is_fenced_everywhere():
    scenario = Scenario()
    _, follower = static_pair(scenario)
    restarted(scenario, follower).join()
    assert follower.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    assert follower.commit(3) is ErrorCode.FENCED_INSTANCE_ID
    assert follower.leave() is ErrorCode.FENCED_INSTANCE_ID
    follower.sync()
    assert follower.sync_error() is ErrorCode.FENCED_INSTANCE_ID
    follower.join()
    assert follower.join_error() is ErrorCode.FENCED_INSTANCE_ID


def test_from_v9_a_restarted_leader_is_told_to_skip_the_assignment():
    scenario = Scenario()
    leader, _ = static_pair(scenario)
    successor = restarted(scenario, leader, version=9)
    successor.join()
    answer = successor.joined()
    assert answer.skip_assignment
    assert answer.leader == answer.member_id
    assert len(answer.members) == 2
    assert scenario.group.leader_id == successor.member_id


def test_before_v9_a_restarted_leader_is_shown_its_predecessor_as_leader():
    scenario = Scenario()
    leader, _ = static_pair(scenario)
    successor = restarted(scenario, leader, version=8)
    successor.join()
    answer = successor.joined()
    assert answer.leader == leader.member_id != answer.member_id
    assert answer.members == []
    assert not answer.skip_assignment
    assert scenario.group.leader_id == successor.member_id


def test_a_successor_that_changes_the_chosen_protocol_causes_a_rebalance():
    scenario = Scenario()
    leader, follower = static_pair(scenario, protocols=protocols("range", "sticky"))
    successor = restarted(scenario, follower, protocols=protocols("sticky"))
    successor.join()
    assert successor.is_waiting_to_join
    assert leader.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    leader.join()
    assert successor.joined().protocol_name == "sticky"


def test_a_static_member_that_missed_a_rebalance_keeps_its_place_until_its_session_ends():
    scenario = Scenario()
    leader, follower = static_pair(scenario, session_timeout_ms=100_000)
    newcomer = scenario.client(session_timeout_ms=100_000)
    newcomer.join()
    leader.join()
    scenario.advance(60_000)
    scenario.sync_all([leader, newcomer])
    assert follower.member_id in scenario.group.members


def test_a_group_of_absent_static_members_waits_for_their_sessions():
    scenario = Scenario()
    leader, follower = static_pair(scenario, session_timeout_ms=100_000, rebalance_timeout_ms=5_000)
    leader.join()  # a rebalance begins ...
    scenario.take(scenario.shard.forget(leader.join_token, scenario.now))
    leader.leave()  # ... and the only one who joined leaves
    assert scenario.group.state is GroupState.PREPARING_REBALANCE
    scenario.advance(90_000)
    assert follower.member_id in scenario.group.members
    assert scenario.group.generation_id == 1
    scenario.advance(10_000)
    assert scenario.group.state is GroupState.EMPTY


def test_a_predecessor_that_waits_in_join_is_fenced_there():
    scenario = Scenario()
    first = scenario.client(instance_id="a")
    first.join()
    second = scenario.client(instance_id="a")
    second.join()
    assert first.join_error() is ErrorCode.FENCED_INSTANCE_ID
    scenario.advance(6_000)
    second.joined()
    assert len(scenario.group.members) == 1


def test_a_predecessor_that_waits_in_sync_is_fenced_and_the_group_rebalances():
    scenario = Scenario()
    clients = [scenario.client(instance_id=name) for name in ("a", "b")]
    for client in clients:
        client.join()
    scenario.advance(6_000)
    for client in clients:
        client.joined()
    _, follower = clients
    follower.sync()
    successor = restarted(scenario, follower)
    successor.join()
    assert follower.sync_error() is ErrorCode.FENCED_INSTANCE_ID
    assert scenario.group.state is GroupState.PREPARING_REBALANCE


def test_an_administrator_removes_a_static_member_by_instance_id_alone():
    scenario = Scenario()
    leader, follower = static_pair(scenario)
    follower.member_id = ""
    assert follower.leave() is ErrorCode.NONE
    assert leader.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert "b" not in scenario.group.static_member_ids


def test_the_replacement_is_in_the_log():
    scenario = Scenario()
    leader, follower = static_pair(scenario)
    successor = restarted(scenario, follower)
    successor.join()
    successor.joined()
    scenario.reload()
    assert set(scenario.group.members) == {leader.member_id, successor.member_id}
    assert successor.heartbeat() is ErrorCode.NONE
    assert follower.heartbeat() is ErrorCode.FENCED_INSTANCE_ID


def test_a_successor_whose_metadata_does_not_fit_is_refused_and_changes_nothing():
    scenario = Scenario(GroupConfig(max_batch_bytes=5_000))
    _, follower = static_pair(scenario)
    record_count = len(scenario.log)
    successor = restarted(scenario, follower, protocols=protocols("range", metadata=b"m" * 5_000))
    successor.join()
    assert successor.join_error() is ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(scenario.log) == record_count
    assert follower.heartbeat() is ErrorCode.NONE
