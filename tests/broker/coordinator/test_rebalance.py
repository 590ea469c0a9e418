"""Rebalances: who joins, who is waited for, who is left behind."""

from broker.coordinator.classic_group.classic_group import GroupState
from broker.coordinator.group_state.config import GroupConfig
from common.kafka.errors import ErrorCode
from tests.lib.group_scenario import Scenario, protocols, subscription


def test_four_members_that_join_together_settle_within_one_rebalance_delay():
    scenario = Scenario()
    clients = [scenario.client() for _ in range(4)]
    clients[0].join()
    for client in clients[1:]:
        client.join()
    # Members arrived during the delay, so it is extended once; nobody arrives in the second one.
    scenario.advance(6_000)
    answers = [client.joined() for client in clients]
    assert {answer.generation_id for answer in answers} == {1}
    assert [len(answer.members) for answer in answers] == [4, 0, 0, 0]
    for client in reversed(clients):
        client.sync()
    assert {client.synced() for client in clients} == {
        f"{client.member_id}@1".encode() for client in clients
    }
    assert scenario.group.state is GroupState.STABLE


def test_a_single_member_waits_one_initial_delay():
    scenario = Scenario()
    client = scenario.client()
    client.join()
    scenario.advance(2_999)
    assert client.is_waiting_to_join
    scenario.advance(1)
    assert client.joined().generation_id == 1
    assert client.is_leader


def test_without_an_initial_delay_the_first_member_need_not_wait():
    scenario = Scenario(GroupConfig(group_initial_rebalance_delay_ms=0))
    client = scenario.client()
    client.join()
    scenario.advance(0)
    assert client.joined().generation_id == 1


def test_a_member_that_was_given_its_id_is_waited_for_in_the_first_generation():
    scenario = Scenario(GroupConfig(group_initial_rebalance_delay_ms=20))
    first, second = scenario.client(), scenario.client()
    first.join()
    scenario.advance(15)
    second.send_join()
    second.member_id = second.join_answer().member_id
    scenario.advance(10)
    second.send_join()
    assert first.is_waiting_to_join
    scenario.advance(40)
    assert first.joined().generation_id == second.joined().generation_id == 1


def test_the_initial_delay_grows_with_arrivals_only_up_to_the_rebalance_timeout():
    scenario = Scenario()
    clients = [scenario.client(rebalance_timeout_ms=10_000) for _ in range(12)]
    for index, client in enumerate(clients):
        client.join()
        if index < 10:
            scenario.advance(1_000)
    assert not any(client.is_waiting_to_join for client in clients[:10])
    assert scenario.group.generation_id >= 1


def test_a_late_joiner_sends_everyone_back_through_heartbeats():
    scenario = Scenario()
    first, second = scenario.stable_group(2)
    late = scenario.client()
    late.join()
    assert late.is_waiting_to_join
    assert first.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert second.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    first.join()
    second.join()
    scenario.sync_all([first, second, late])
    assert scenario.group.generation_id == 2
    assert late.assignment == f"{late.member_id}@2".encode()


def test_a_dynamic_member_that_does_not_rejoin_is_dropped_at_the_rebalance_timeout():
    scenario = Scenario()
    first, second = scenario.stable_group(2, session_timeout_ms=120_000)
    late = scenario.client()
    late.join()
    first.join()
    scenario.advance(59_999)
    assert late.is_waiting_to_join
    scenario.advance(1)
    scenario.sync_all([first, late])
    assert second.member_id not in scenario.group.members
    assert second.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_dead_member_is_dropped_when_its_session_ends_and_the_rest_settle():
    scenario = Scenario()
    first, second = scenario.stable_group(2)
    scenario.advance(9_000)
    assert second.heartbeat() is ErrorCode.NONE
    scenario.advance(1_000)
    assert first.member_id not in scenario.group.members
    assert second.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    second.join()
    scenario.sync_all([second])
    assert second.is_leader
    assert scenario.group.generation_id == 2


def test_the_leader_that_does_not_rejoin_is_replaced():
    scenario = Scenario()
    clients = scenario.stable_group(3)
    leader = next(client for client in clients if client.is_leader)
    followers = [client for client in clients if client is not leader]
    assert leader.leave() is ErrorCode.NONE
    for client in followers:
        client.join()
    scenario.sync_all(followers)
    assert sum(client.is_leader for client in followers) == 1


def test_a_member_that_never_syncs_is_removed_after_the_rebalance_timeout():
    scenario = Scenario()
    clients = [scenario.client(session_timeout_ms=100_000) for _ in range(2)]
    for client in clients:
        client.join()
    scenario.advance(6_000)
    for client in clients:
        client.joined()
    leader, follower = sorted(clients, key=lambda each: not each.is_leader)
    leader.sync()
    leader.synced()
    assert scenario.group.state is GroupState.STABLE
    scenario.advance(60_000)
    assert follower.member_id not in scenario.group.members
    assert scenario.group.state is GroupState.PREPARING_REBALANCE


def test_a_leader_that_never_syncs_is_removed_and_the_followers_are_sent_back():
    scenario = Scenario()
    clients = [scenario.client(session_timeout_ms=100_000) for _ in range(2)]
    for client in clients:
        client.join()
    scenario.advance(6_000)
    for client in clients:
        client.joined()
    leader, follower = sorted(clients, key=lambda each: not each.is_leader)
    follower.sync()
    assert follower.is_waiting_to_sync
    scenario.advance(60_000)
    assert follower.sync_error() is ErrorCode.REBALANCE_IN_PROGRESS
    assert leader.member_id not in scenario.group.members
    follower.join()
    scenario.sync_all([follower])


def test_a_follower_that_rejoins_unchanged_gets_the_current_generation():
    scenario = Scenario()
    clients = scenario.stable_group(2)
    follower = next(client for client in clients if not client.is_leader)
    follower.join()
    answer = follower.joined()
    assert answer.generation_id == 1
    assert answer.members == []
    follower.sync()
    assert follower.synced() == f"{follower.member_id}@1".encode()
    assert scenario.group.state is GroupState.STABLE


def test_a_follower_with_new_metadata_causes_a_rebalance():
    scenario = Scenario()
    clients = scenario.stable_group(2)
    follower = next(client for client in clients if not client.is_leader)
    follower.protocols = protocols("range", metadata=subscription("t", "u"))
    follower.join()
    assert scenario.group.state is GroupState.PREPARING_REBALANCE


def test_a_leader_that_rejoins_causes_a_rebalance():
    scenario = Scenario()
    clients = scenario.stable_group(2)
    leader = next(client for client in clients if client.is_leader)
    leader.join()
    assert scenario.group.state is GroupState.PREPARING_REBALANCE


def test_a_repeated_join_after_the_generation_began_gets_the_same_answer():
    scenario = Scenario()
    clients = [scenario.client() for _ in range(2)]
    for client in clients:
        client.join()
    scenario.advance(6_000)
    before = [client.joined() for client in clients]
    for client in clients:
        client.join()
    assert [client.joined() for client in clients] == before


def test_the_protocol_with_the_most_votes_among_the_common_ones_wins():
    scenario = Scenario()
    clients = [
        scenario.client(protocols=protocols("sticky", "range", "own")),
        scenario.client(protocols=protocols("range", "sticky")),
        scenario.client(protocols=protocols("range", "sticky")),
    ]
    for client in clients:
        client.join()
    scenario.advance(6_000)
    answers = [client.joined() for client in clients]
    assert {answer.protocol_name for answer in answers} == {"range"}
    assert {answer.protocol_type for answer in answers} == {"consumer"}


def test_the_last_member_to_leave_makes_the_group_empty_with_the_next_generation():
    scenario = Scenario()
    (client,) = scenario.stable_group(1)
    assert client.leave() is ErrorCode.NONE
    assert scenario.group.state is GroupState.EMPTY
    assert scenario.group.generation_id == 2
    assert scenario.group.protocol_type == "consumer"
    assert scenario.group.protocol_name is None


def test_a_new_member_that_waits_too_long_is_removed():
    scenario = Scenario()
    scenario.stable_group(1, rebalance_timeout_ms=10_000_000, session_timeout_ms=1_800_000)
    newcomer = scenario.client()
    newcomer.join()
    scenario.advance(300_000)
    assert newcomer.join_error() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_session_that_is_renewed_in_the_same_wake_up_is_not_ended():
    scenario = Scenario(GroupConfig(group_initial_rebalance_delay_ms=0))
    first = scenario.client(session_timeout_ms=10_000)
    first.join()
    scenario.advance(0)
    first.joined()
    first.sync()
    first.synced()
    unused = scenario.client(session_timeout_ms=10_000)
    unused.send_join()  # is given an id that it never uses: the group waits for it
    assert unused.join_error() is ErrorCode.MEMBER_ID_REQUIRED
    scenario.advance(1)
    first.heartbeat()
    first.join()
    # Both sessions are over when the shell wakes up, late; the unused id's end completes the join
    # phase, and that gives the first member a new session.
    scenario.now_ms += 10_500
    scenario.take(scenario.shard.on_deadline(scenario.now))
    assert first.joined().generation_id == 2
    assert first.heartbeat() is ErrorCode.NONE
