"""Committed offsets: committing, fetching, deleting, expiring."""

import pytest

from broker.coordinator.classic_group.classic_group import GroupState
from broker.coordinator.group_state.config import MAX_NAME_BYTES, GroupConfig
from broker.coordinator.group_state.offset_store import NO_TOPIC_ID
from broker.coordinator.output import ShardContext
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from common.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.lib.group_scenario import GROUP, Scenario, protocols

DAY_MS = 24 * 3_600_000
OLD_ID, NEW_ID = bytes([1] * 16), bytes([2] * 16)


def test_a_members_commit_is_fetched_back():
    scenario = Scenario()
    client, _ = scenario.stable_group(2)
    assert client.commit(42) is ErrorCode.NONE
    assert scenario.fetch({"t": [0, 1]}) == {("t", 0): 42, ("t", 1): -1}
    assert scenario.fetch(None) == {("t", 0): 42}


def test_an_unknown_group_has_committed_nothing():
    scenario = Scenario()
    assert scenario.fetch({"t": [0]}) == {("t", 0): -1}
    assert scenario.fetch(None) == {}


def test_a_simple_consumer_commits_without_being_a_member():
    scenario = Scenario()
    assert scenario.commit({("t", 0): 7}) == {("t", 0): ErrorCode.NONE}
    assert scenario.group.state is GroupState.EMPTY
    assert scenario.group.protocol_type is None
    assert scenario.fetch({"t": [0]}) == {("t", 0): 7}


def test_the_empty_group_id_may_commit_but_not_join():
    scenario = Scenario()
    assert scenario.commit({("t", 0): 7}, group_id="") == {("t", 0): ErrorCode.NONE}
    assert scenario.fetch({"t": [0]}, group_id="") == {("t", 0): 7}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"generation_id_or_member_epoch": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id_or_member_epoch": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id_or_member_epoch": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_commit_from_outside_the_generation_is_refused(fields, code):
    scenario = Scenario()
    client, _ = scenario.stable_group(2)
    right = {"generation_id_or_member_epoch": 1, "member_id": client.member_id}
    assert scenario.commit({("t", 0): 1}, **{**right, **fields}) == {("t", 0): code}
    assert scenario.fetch(None) == {}


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_member_of_an_unknown_group_cannot_commit(version, code):
    scenario = Scenario()
    fields = {"generation_id_or_member_epoch": 3, "member_id": "m"}
    assert scenario.commit({("t", 0): 1}, version=version, **fields) == {("t", 0): code}
    assert scenario.groups == {}


def test_a_commit_keeps_the_session_alive():
    scenario = Scenario()
    (client,) = scenario.stable_group(1)
    for _ in range(5):
        scenario.advance(9_000)
        assert client.commit(1) is ErrorCode.NONE


def test_a_rebalancing_group_still_accepts_the_old_generations_commits():
    scenario = Scenario()
    first, second = scenario.stable_group(2)
    scenario.client().join()
    assert scenario.group.state is GroupState.PREPARING_REBALANCE
    assert first.commit(9) is ErrorCode.NONE
    assert second.commit(9, partition=1) is ErrorCode.NONE


def commit_one(scenario, version=9, topic_id=bytes(16), name="t", **partition_fields):
    partition = OffsetCommitRequestPartition(
        partition_index=0, **{"committed_offset": 5, "committed_metadata": "", **partition_fields}
    )
    topic = OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=[partition])
    request = OffsetCommitRequest(group_id=GROUP, topics=[topic])
    context = ShardContext(version)
    response = scenario.ask(scenario.shard.commit_offsets, context, request)
    assert response.topics[0].topic_id == topic_id
    return ErrorCode(response.topics[0].partitions[0].error_code)


def fetch_one(scenario, version=9, topic_id=bytes(16), name="t"):
    topic = OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=[0])
    request = OffsetFetchRequestGroup(group_id=GROUP, topics=[topic])
    response = scenario.ask(scenario.shard.fetch_offsets, ShardContext(version), request)
    assert response.topics[0].topic_id == topic_id
    return response.topics[0].partitions[0]


def test_metadata_and_leader_epoch_come_back_with_the_offset():
    scenario = Scenario()
    assert commit_one(scenario, committed_metadata="m", committed_leader_epoch=4) is ErrorCode.NONE
    partition = fetch_one(scenario)
    assert (partition.metadata, partition.committed_leader_epoch) == ("m", 4)
    assert commit_one(scenario, committed_metadata=None) is ErrorCode.NONE
    assert fetch_one(scenario).metadata == ""
    assert fetch_one(scenario).committed_leader_epoch == -1


def test_metadata_may_be_4096_characters_long_and_no_longer():
    scenario = Scenario()
    assert commit_one(scenario, committed_metadata="m" * 4_096) is ErrorCode.NONE
    too_long = commit_one(scenario, committed_metadata="m" * 4_097, committed_offset=6)
    assert too_long is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert fetch_one(scenario).committed_offset == 5


def test_names_too_long_for_a_record_cannot_be_committed():
    scenario = Scenario()
    long = "n" * (MAX_NAME_BYTES + 1)
    assert commit_one(scenario, name=long) is ErrorCode.INVALID_TOPIC_EXCEPTION
    codes = scenario.commit({("t", 0): 1}, group_id=long)
    assert codes == {("t", 0): ErrorCode.INVALID_GROUP_ID}


def test_metadata_is_never_longer_than_a_record_can_hold():
    scenario = Scenario(GroupConfig(offset_metadata_max_bytes=1 << 20))
    assert commit_one(scenario, committed_metadata="m" * MAX_NAME_BYTES) is ErrorCode.NONE
    too_long = commit_one(scenario, committed_metadata="m" * (MAX_NAME_BYTES + 1))
    assert too_long is ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_a_retention_time_without_end_never_expires():
    scenario = Scenario()
    scenario.commit({("t", 0): 1}, version=3, retention_time_ms=(1 << 63) - 1)
    scenario.reload()
    scenario.advance(1000 * DAY_MS)
    assert expire(scenario) == 0


def test_a_topic_id_nobody_could_resolve_is_answered_so():
    scenario = Scenario()
    assert commit_one(scenario, 10, OLD_ID, name="") is ErrorCode.UNKNOWN_TOPIC_ID
    assert scenario.log == []
    partition = fetch_one(scenario, 10, OLD_ID, name="")
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert partition.committed_offset == -1


def test_an_offset_of_a_deleted_topic_is_not_shown_for_its_namesake():
    scenario = Scenario()
    assert commit_one(scenario, 10, OLD_ID) is ErrorCode.NONE
    assert fetch_one(scenario, 10, OLD_ID).committed_offset == 5
    assert fetch_one(scenario, 10, NEW_ID).committed_offset == -1
    assert fetch_one(scenario, 9).committed_offset == 5


def test_a_commit_too_large_for_one_batch_is_refused_as_a_whole():
    scenario = Scenario(GroupConfig(max_batch_bytes=2_000))
    codes = scenario.commit({("t", partition): 1 for partition in range(100)})
    assert set(codes.values()) == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    assert scenario.groups == {}
    assert scenario.log == []


def test_one_commit_is_one_batch():
    scenario = Scenario()
    before = len(scenario.log)
    output_sizes = []
    take = scenario.take
    scenario.take = lambda output: output_sizes.append(len(output.records)) or take(output)
    scenario.commit({("t", partition): 1 for partition in range(100)})
    assert output_sizes == [100]
    assert len(scenario.log) == before + 100


def delete(scenario, topic="t", partitions=(0,), group_id=GROUP):
    request = OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[OffsetDeleteRequestPartition(partition_index=p) for p in partitions],
            )
        ],
    )
    response = scenario.ask(scenario.shard.delete_offsets, ShardContext(0), request)
    if response.error_code:
        return ErrorCode(response.error_code)
    return [ErrorCode(each.error_code) for each in response.topics[0].partitions]


def test_offsets_of_a_group_without_members_can_be_deleted():
    scenario = Scenario()
    scenario.commit({("t", 0): 7, ("t", 1): 8})
    assert delete(scenario, partitions=(0, 5)) == [ErrorCode.NONE, ErrorCode.NONE]
    assert scenario.fetch(None) == {("t", 1): 8}
    scenario.reload()
    assert scenario.fetch(None) == {("t", 1): 8}


def test_offsets_of_a_topic_a_member_reads_cannot_be_deleted():
    scenario = Scenario()
    client, _ = scenario.stable_group(2)
    client.commit(1, topic="t")
    client.commit(2, topic="old")
    assert delete(scenario, "t") == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    assert delete(scenario, "old") == [ErrorCode.NONE]
    assert scenario.fetch(None) == {("t", 0): 1}


def test_who_may_not_delete_offsets():
    scenario = Scenario()
    assert delete(scenario) is ErrorCode.GROUP_ID_NOT_FOUND
    assert delete(scenario, group_id="") is ErrorCode.INVALID_GROUP_ID
    scenario.stable_group(1, protocol_type="connect")
    assert delete(scenario) is ErrorCode.NON_EMPTY_GROUP


def test_a_deleted_topic_takes_its_offsets_along():
    scenario = Scenario()
    commit_one(scenario, 10, OLD_ID)
    scenario.take(scenario.shard.on_topic_deleted("t", NEW_ID, scenario.now.timestamp_ms))
    assert scenario.fetch(None) == {("t", 0): 5}
    scenario.take(scenario.shard.on_topic_deleted("t", OLD_ID, scenario.now.timestamp_ms))
    assert scenario.fetch(None) == {}
    scenario.commit({("t", 0): 1}, group_id="other")
    before_ms = scenario.now.timestamp_ms - 1
    scenario.take(scenario.shard.on_topic_deleted("t", NO_TOPIC_ID, before_ms))
    assert scenario.fetch(None, group_id="other") == {("t", 0): 1}, "it is of a namesake"
    scenario.take(scenario.shard.on_topic_deleted("t", NO_TOPIC_ID, scenario.now.timestamp_ms))
    assert scenario.fetch(None, group_id="other") == {}


def expire(scenario):
    return len(scenario.take(scenario.shard.expire_offsets(scenario.now.timestamp_ms)).records)


def test_a_simple_groups_offsets_expire_one_by_one_and_the_group_with_the_last():
    scenario = Scenario()
    scenario.commit({("t", 0): 1})
    scenario.advance(3 * DAY_MS)
    scenario.commit({("t", 1): 1})
    scenario.advance(4 * DAY_MS - 1)
    assert expire(scenario) == 0
    scenario.advance(1)
    assert expire(scenario) == 1
    assert scenario.fetch(None) == {("t", 1): 1}
    scenario.advance(3 * DAY_MS)
    assert expire(scenario) == 1
    assert scenario.groups == {}


def test_a_left_groups_offsets_expire_together_counted_from_the_day_it_was_left():
    scenario = Scenario()
    (client,) = scenario.stable_group(1)
    client.commit(1)
    client.leave()
    scenario.advance(7 * DAY_MS - 1)
    assert expire(scenario) == 0
    scenario.advance(1)
    assert expire(scenario) == 2  # the offset and the group
    assert scenario.groups == {}
    scenario.reload()
    assert scenario.groups == {}


def test_a_stable_groups_offsets_expire_only_for_topics_nobody_reads():
    scenario = Scenario()
    (client,) = scenario.stable_group(1, session_timeout_ms=1_800_000)
    client.commit(1, topic="t")
    client.commit(1, topic="old")
    for _ in range(7 * 24 * 2):
        scenario.advance(1_800_000 - 1)
        client.heartbeat()
    scenario.advance(400_000)
    assert expire(scenario) == 1
    assert scenario.fetch(None) == {("t", 0): 1}


def test_a_retention_time_of_its_own_comes_before_the_brokers():
    scenario = Scenario()
    scenario.commit({("t", 0): 1}, version=3, retention_time_ms=5_000)
    scenario.reload()
    scenario.advance(4_999)
    assert expire(scenario) == 0
    scenario.advance(1)
    assert expire(scenario) == 1


def test_offsets_of_an_unreadable_consumer_subscription_never_expire_while_it_is_read():
    scenario = Scenario()
    (client,) = scenario.stable_group(1, protocols=protocols("range", metadata=b"?"))
    client.commit(1)
    assert scenario.group.subscribed_topics is None
    assert delete(scenario) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
