"""JoinGroup and SyncGroup: what is refused, and what the versions change."""

import pytest

from broker.coordinator.classic_group.classic_group import GroupState
from broker.coordinator.group_state.config import MAX_NAME_BYTES, MAX_PENDING_MEMBERS, GroupConfig
from common.kafka.errors import ErrorCode
from tests.lib.group_scenario import GROUP, Scenario, protocols


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group_id": "g" * (MAX_NAME_BYTES + 1)}, ErrorCode.INVALID_GROUP_ID),
        ({"group_instance_id": "ü" * MAX_NAME_BYTES}, ErrorCode.INVALID_REQUEST),
        ({"protocol_type": "t" * (MAX_NAME_BYTES + 1)}, ErrorCode.INVALID_REQUEST),
        ({"protocols": protocols("p" * (MAX_NAME_BYTES + 1))}, ErrorCode.INVALID_REQUEST),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_first_join_that_cannot_be_right_is_refused_and_leaves_no_group(changes, code):
    scenario = Scenario()
    client = scenario.client()
    client.send_join(**changes)
    assert client.join_error() is code
    assert scenario.groups == {}


@pytest.mark.parametrize("session_timeout_ms", [6_000, 1_800_000])
def test_session_timeouts_at_both_ends_are_accepted(session_timeout_ms):
    scenario = Scenario()
    client = scenario.client(session_timeout_ms=session_timeout_ms)
    client.join()
    assert client.is_waiting_to_join


@pytest.mark.parametrize(
    "changes", [{"protocol_type": "connect"}, {"protocols": protocols("other")}]
)
def test_a_member_without_a_common_protocol_is_refused(changes):
    scenario = Scenario()
    scenario.stable_group(2)
    client = scenario.client()
    client.send_join(**changes)
    assert client.join_error() is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert scenario.group.state is GroupState.STABLE


def test_from_v4_a_dynamic_member_gets_an_id_first():
    scenario = Scenario()
    client = scenario.client(version=4)
    client.send_join()
    answer = client.join_answer()
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("client1-")
    assert len(answer.member_id) == len("client1-") + 36
    client.send_join(member_id=answer.member_id)
    scenario.advance(3_000)
    assert client.joined().member_id == answer.member_id


def test_before_v4_a_member_waits_at_once():
    scenario = Scenario()
    client = scenario.client(version=3)
    client.send_join()
    scenario.advance(3_000)
    assert client.joined().member_id.startswith("client1-")


def test_a_v0_member_has_no_rebalance_timeout_but_its_session_timeout():
    scenario = Scenario()
    client = scenario.client(version=0, rebalance_timeout_ms=-1)
    client.send_join()
    (member,) = scenario.group.members.values()
    assert member.rebalance_timeout_ms == client.session_timeout_ms


def test_the_group_waits_for_an_id_it_gave_out_but_not_longer_than_the_session():
    scenario = Scenario()
    (member,) = scenario.stable_group(1)
    pending = scenario.client(session_timeout_ms=8_000)
    pending.send_join()
    assert pending.join_error() is ErrorCode.MEMBER_ID_REQUIRED
    member.join()
    assert member.is_waiting_to_join
    scenario.advance(8_000)
    assert member.joined().generation_id == 2


def test_a_pending_member_that_leaves_is_not_waited_for_and_disturbs_nobody():
    scenario = Scenario()
    (member,) = scenario.stable_group(1)
    pending = scenario.client()
    pending.send_join()
    pending.member_id = pending.join_answer().member_id
    assert pending.leave() is ErrorCode.NONE
    assert scenario.group.state is GroupState.STABLE
    assert member.heartbeat() is ErrorCode.NONE


def test_a_group_whose_only_trace_is_an_unused_id_vanishes_with_it():
    scenario = Scenario()
    client = scenario.client()
    client.send_join()
    assert GROUP in scenario.groups
    scenario.advance(client.session_timeout_ms)
    assert scenario.groups == {}
    assert scenario.log == []


def test_ids_given_out_but_not_used_are_limited():
    scenario = Scenario()
    client = scenario.client()
    for _ in range(MAX_PENDING_MEMBERS):
        client.send_join()
    client.send_join()
    assert client.join_error() is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_full_group_takes_no_new_member():
    scenario = Scenario(GroupConfig(group_max_size=2))
    scenario.stable_group(2)
    third = scenario.client()
    third.send_join()
    answer = third.join_answer()
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert answer.member_id == ""
    assert scenario.group.state is GroupState.STABLE


def test_while_joining_only_those_who_wait_count_against_the_limit():
    scenario = Scenario(GroupConfig(group_max_size=2))
    first, second = scenario.stable_group(2)
    first.leave()
    newcomer = scenario.client()
    newcomer.join()
    second.join()
    scenario.sync_all([second, newcomer])
    assert len(scenario.group.members) == 2


def test_a_group_loaded_above_the_limit_lets_the_last_to_come_back_go():
    scenario = Scenario()
    first, second, third = scenario.stable_group(3)
    scenario.config = GroupConfig(group_max_size=2)
    scenario.reload()
    assert scenario.group.state is GroupState.PREPARING_REBALANCE
    first.join()
    second.join()
    third.join()
    assert third.join_error() is ErrorCode.GROUP_MAX_SIZE_REACHED
    scenario.sync_all([first, second])


@pytest.mark.parametrize(("version", "protocol_name"), [(6, ""), (7, None)])
def test_from_v7_a_refused_join_names_no_protocol(version, protocol_name):
    scenario = Scenario()
    client = scenario.client(version=version)
    client.send_join(group_id="")
    assert client.join_answer().protocol_name == protocol_name
    client.join()
    client.leave()
    answer = client.join_answer()
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert answer.protocol_name == protocol_name


def test_the_longest_names_that_are_accepted_can_be_written_down():
    scenario = Scenario()
    name = "n" * MAX_NAME_BYTES
    client = scenario.client(protocol_type=name, protocols=protocols(name), group_id=name)
    client.client_id = name
    client.join()
    scenario.advance(3_000)
    client.joined()
    client.sync()
    client.synced()
    assert client.commit(1, topic=name) is ErrorCode.NONE
    scenario.reload()
    assert client.heartbeat() is ErrorCode.NONE


def test_a_join_sent_twice_answers_the_first_one_with_a_retry():
    scenario = Scenario()
    client = scenario.client()
    client.join()
    first_token = client.join_token
    client.send_join()
    assert scenario.replies.pop(first_token).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    scenario.advance(6_000)
    client.joined()


def test_a_protocol_named_twice_counts_once():
    scenario = Scenario()
    client = scenario.client(protocols=[*protocols("range"), *protocols("range", metadata=b"2")])
    client.join()
    scenario.advance(3_000)
    client.joined()
    assert client.members[0].metadata == protocols("range")[0].metadata


def test_a_sync_of_another_generation_or_protocol_is_refused():
    scenario = Scenario()
    client, _ = scenario.stable_group(2)
    for changes, code in [
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "nowhere"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": None}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"version": 4, "protocol_type": None, "protocol_name": None}, ErrorCode.NONE),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.NONE),
    ]:
        client.send_sync(**changes)
        assert client.sync_error() is code, changes


def test_a_member_the_leader_forgets_gets_an_empty_assignment():
    scenario = Scenario()
    clients = [scenario.client() for _ in range(2)]
    for client in clients:
        client.join()
    scenario.advance(6_000)
    for client in clients:
        client.joined()
    leader, follower = clients
    follower.sync()
    leader.sync({leader.member_id: b"all", "ghost": b"none"})
    assert (leader.synced(), follower.synced()) == (b"all", b"")


def test_the_assignment_is_answered_only_together_with_its_record():
    scenario = Scenario()
    client = scenario.client()
    client.join()
    scenario.advance(3_000)
    client.joined()
    assert scenario.log == []
    client.sync()
    assert len(scenario.log) == 1
    client.synced()


def test_a_group_too_large_for_one_record_cannot_become_stable():
    scenario = Scenario(GroupConfig(max_batch_bytes=5_000))
    clients = [scenario.client(protocols=protocols("range", metadata=b"m" * 3_000)) for _ in "12"]
    for client in clients:
        client.join()
    scenario.advance(6_000)
    leader, follower = clients
    for client in clients:
        client.joined()
    follower.sync()
    leader.sync()
    assert leader.sync_error() is ErrorCode.UNKNOWN_SERVER_ERROR
    assert follower.sync_error() is ErrorCode.UNKNOWN_SERVER_ERROR
    assert scenario.log == []
    assert scenario.group.state is GroupState.PREPARING_REBALANCE


def test_a_closed_connection_does_not_cost_a_member_its_place():
    scenario = Scenario()
    first, second = scenario.client(), scenario.client()
    first.join()
    second.join()
    scenario.take(scenario.shard.forget(first.join_token, scenario.now))
    scenario.advance(6_000)
    assert first.join_token not in scenario.replies
    assert first.member_id in scenario.group.members
    second.joined()
    first.join()
    assert first.joined().generation_id == 1


def test_a_member_that_was_never_told_its_id_goes_with_its_connection():
    scenario = Scenario()
    (member,) = scenario.stable_group(1)
    old_client = scenario.client(version=3)
    old_client.send_join()
    member.join()
    assert not member.is_waiting_to_join
    member.joined()
    another = scenario.client(version=3)
    another.send_join()
    scenario.take(scenario.shard.forget(another.join_token, scenario.now))
    member.join()
    old_client.joined()
    assert len(scenario.group.members) == 2


def test_metadata_that_no_record_can_hold_is_refused_at_once():
    scenario = Scenario()
    too_large = bytes(scenario.config.max_batch_bytes + 1)
    client = scenario.client(protocols=protocols("range", metadata=too_large))
    client.join()
    assert client.join_error() is ErrorCode.UNKNOWN_SERVER_ERROR
    assert scenario.groups == {}
