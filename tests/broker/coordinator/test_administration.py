"""DescribeGroups, ListGroups, DeleteGroups, LeaveGroup's old and new shapes, refusals."""

import pytest

from broker.coordinator.classic_group.classic_group import ClassicGroup, GroupState
from broker.coordinator.group.refusals import refuse
from broker.coordinator.group_state.config import GroupConfig
from broker.coordinator.output import Reply, ShardContext
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.join_group import JoinGroupResponse
from common.kafka.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tests.lib.group_scenario import GROUP, Scenario, protocols


def describe(scenario, version=6, group_id=GROUP):
    return scenario.ask(scenario.shard.describe_group, ShardContext(version), group_id)


def delete_group(scenario, group_id=GROUP):
    answer = scenario.ask(scenario.shard.delete_group, ShardContext(2), group_id)
    assert answer.group_id == group_id
    return ErrorCode(answer.error_code)


def test_a_stable_group_shows_what_its_members_read_and_were_assigned():
    scenario = Scenario()
    clients = scenario.stable_group(2)
    group = describe(scenario)
    assert (group.group_state, group.protocol_type, group.protocol_data) == (
        "Stable", "consumer", "range",
    )  # fmt: skip
    first = group.members[0]
    assert first.member_id == clients[0].member_id
    assert first.member_assignment == clients[0].assignment
    assert first.member_metadata == protocols("range")[0].metadata
    assert (first.client_id, first.client_host) == ("client1", "/127.0.0.1")


def test_a_rebalancing_group_shows_the_last_assignment_but_no_metadata():
    scenario = Scenario()
    (client,) = scenario.stable_group(1)
    scenario.client().join()
    group = describe(scenario)
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert [(each.member_metadata, each.member_assignment) for each in group.members] == [
        (b"", client.assignment), (b"", b""),
    ]  # fmt: skip


def test_an_unknown_group_is_dead_and_from_v6_not_found():
    scenario = Scenario()
    old, new = describe(scenario, 5), describe(scenario, 6)
    assert (old.group_state, old.error_code, old.error_message) == ("Dead", 0, None)
    assert (new.group_state, new.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert new.error_message == f"Group {GROUP} not found."


def test_groups_are_listed_by_state_and_type_whatever_the_case():
    scenario = Scenario()
    scenario.stable_group(1)
    scenario.commit({("t", 0): 1}, group_id="simple")
    by_id = {each.group_id: each for each in scenario.list_groups()}
    assert {name: each.group_state for name, each in by_id.items()} == {
        GROUP: "Stable",
        "simple": "Empty",
    }
    assert by_id[GROUP].group_type == "classic"
    assert by_id["simple"].protocol_type == ""
    assert [each.group_id for each in scenario.list_groups(["STABLE"])] == [GROUP]
    assert scenario.list_groups(["Dead"]) == []
    assert len(scenario.list_groups(types=["Classic"])) == 2
    assert scenario.list_groups(types=["consumer"]) == []


def test_a_group_with_members_cannot_be_deleted():
    scenario = Scenario()
    (client,) = scenario.stable_group(1)
    assert delete_group(scenario) is ErrorCode.NON_EMPTY_GROUP
    client.leave()
    assert delete_group(scenario) is ErrorCode.NONE
    assert delete_group(scenario) is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_deleted_group_leaves_nothing_behind():
    scenario = Scenario()
    (client,) = scenario.stable_group(1)
    client.commit(1)
    client.leave()
    scenario.client().send_join()  # an id is given out and not used
    delete_group(scenario)
    scenario.reload()
    assert scenario.groups == {}
    assert scenario.fetch(None) == {}
    assert scenario.shard.next_deadline_ms() is None


def test_a_bulk_of_tombstones_is_split_into_batches_that_fit():
    scenario = Scenario(GroupConfig(max_batch_bytes=2_000))
    for partition in range(100):
        scenario.commit({("t", partition): 1})
    output = scenario.shard.delete_group("token", ShardContext(2), GROUP, scenario.now)
    batches = list(output.batches(2_000))
    assert sum(map(len, batches)) == 100
    assert len(batches) > 1
    assert list(output.batches(1)) == [[record] for record in output.records]


def leave(scenario, version, *identities, **fields):
    request = LeaveGroupRequest(group_id=GROUP, members=list(identities), **fields)
    return scenario.ask(scenario.shard.leave_group, ShardContext(version), request)


def test_several_members_leave_at_once_each_with_its_own_answer():
    scenario = Scenario()
    first, second, third = scenario.stable_group(3)
    response = leave(
        scenario,
        5,
        MemberIdentity(member_id=first.member_id),
        MemberIdentity(member_id="ghost"),
        MemberIdentity(member_id=second.member_id, group_instance_id="ghost"),
        MemberIdentity(member_id="", group_instance_id="ghost"),
        MemberIdentity(member_id=third.member_id, reason="tired"),
    )
    assert [each.error_code for each in response.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert set(scenario.group.members) == {second.member_id}
    assert scenario.group.generation_id == 1


def test_leaving_an_unknown_group_makes_every_member_unknown():
    scenario = Scenario()
    response = leave(scenario, 3, MemberIdentity(member_id="m"))
    assert (response.error_code, response.members[0].error_code) == (
        0, ErrorCode.UNKNOWN_MEMBER_ID,
    )  # fmt: skip
    assert leave(scenario, 2, member_id="m").error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", [0, 1, 2])
def test_before_v3_a_single_member_leaves(version):
    scenario = Scenario()
    (client,) = scenario.stable_group(1)
    assert client.leave(version) is ErrorCode.NONE
    assert client.leave(version) is ErrorCode.UNKNOWN_MEMBER_ID
    assert scenario.group.state is GroupState.EMPTY


def test_a_member_that_waits_and_leaves_is_answered():
    scenario = Scenario()
    client = scenario.client()
    client.join()
    assert client.leave() is ErrorCode.NONE
    assert client.join_error() is ErrorCode.UNKNOWN_MEMBER_ID
    scenario.advance(3_000)
    assert scenario.group.state is GroupState.EMPTY


def test_unloading_refuses_everyone_who_is_parked():
    scenario = Scenario()
    clients = [scenario.client() for _ in range(2)]
    for client in clients:
        client.join()
    scenario.advance(6_000)
    for client in clients:
        client.joined()
    clients[1].sync()
    other = scenario.client(group_id="other")
    other.join()
    replies = dict(scenario.shard.unload(ErrorCode.NOT_COORDINATOR))
    assert {token: reply.error_code for token, reply in replies.items()} == {
        clients[1].sync_token: ErrorCode.NOT_COORDINATOR,
        other.join_token: ErrorCode.NOT_COORDINATOR,
    }
    assert isinstance(replies[other.join_token], JoinGroupResponse)


def test_to_unload_very_many_groups_only_those_are_looked_at_where_somebody_waits():
    scenario = Scenario()
    waiting = scenario.client(group_id="waits")
    waiting.join()
    tables = scenario.shard.state.tables
    tables[ClassicGroup] = Unwalked(tables[ClassicGroup])
    assert [token for token, _ in scenario.shard.unload(ErrorCode.NOT_COORDINATOR)] == [
        waiting.join_token
    ]


class Unwalked(dict):
    """Fails who looks at everything in it."""

    def __iter__(self):
        raise AssertionError("all of it is looked at")

    keys = values = items = __iter__


def test_an_answer_that_cannot_be_given_becomes_a_refusal_of_its_kind():
    code = ErrorCode.NOT_COORDINATOR
    join = refuse(Reply("t", JoinGroupResponse(member_id="m", generation_id=4)), code)
    assert join == Reply("t", JoinGroupResponse(member_id="m", error_code=code))
    partition = OffsetCommitResponsePartition(partition_index=3)
    commit = OffsetCommitResponse(
        topics=[OffsetCommitResponseTopic(name="t", partitions=[partition])]
    )
    refused = refuse(Reply("t", commit), code).response
    assert refused.topics[0].partitions[0].error_code == code
    assert refuse(Reply("t", [1]), code) == Reply("t", [])
