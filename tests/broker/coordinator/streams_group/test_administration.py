"""Offsets, lists, deletion and replacement of streams groups."""

import pytest

from broker.coordinator.output import ShardContext
from broker.coordinator.streams_group.member import MemberState
from broker.coordinator.streams_group.streams_group import StreamsGroup
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from common.kafka.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from tests.lib.consumer_group_scenario import topic_id
from tests.lib.group_scenario import GROUP, Client
from tests.lib.streams_group_scenario import StreamsScenario


@pytest.fixture
def world() -> StreamsScenario:
    world = StreamsScenario()
    world.topics(orders=2)
    return world


@pytest.fixture
def thread(world):
    thread = world.thread()
    world.settle(thread)
    return thread


def test_a_member_commits_its_tasks_in_its_epoch(world, thread):
    assert thread.commit("orders", 0) is ErrorCode.NONE
    future = thread.commit("orders", 0, generation_id_or_member_epoch=99)
    assert future is ErrorCode.STALE_MEMBER_EPOCH
    assert thread.commit("orders", 0, member_id="other") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_of_an_older_epoch_is_good_for_tasks_that_the_member_has_had_since(world, thread):
    old = thread.member_epoch
    second = world.thread()
    world.settle(thread, second)
    kept = sorted(partition for name, partition in thread.active if name == "0")
    lost = sorted(partition for name, partition in second.active if name == "0")
    for partition in kept:
        code = thread.commit("orders", partition, generation_id_or_member_epoch=old)
        assert code is ErrorCode.NONE
    for partition in lost:
        code = thread.commit("orders", partition, generation_id_or_member_epoch=old)
        assert code is ErrorCode.STALE_MEMBER_EPOCH
    code = thread.commit("elsewhere", 0, generation_id_or_member_epoch=old)
    assert code is ErrorCode.STALE_MEMBER_EPOCH


def test_an_administrator_commits_only_for_a_group_without_members(world, thread):
    admin = {"member_id": "", "generation_id_or_member_epoch": -1}
    assert thread.commit("orders", 0, **admin) is ErrorCode.UNKNOWN_MEMBER_ID
    thread.leave()
    assert thread.commit("orders", 0, **admin) is ErrorCode.NONE


def test_offsets_are_fetched_in_the_member_s_epoch(world, thread):
    def fetch(**who):
        request = OffsetFetchRequestGroup(group_id=GROUP, topics=None, **who)
        return world.ask(world.shard.fetch_offsets, ShardContext(9), request).error_code

    epoch = thread.member_epoch
    assert fetch(member_id=thread.member_id, member_epoch=epoch) == ErrorCode.NONE
    assert fetch(member_id=thread.member_id, member_epoch=epoch - 1) == (
        ErrorCode.STALE_MEMBER_EPOCH
    )
    assert fetch(member_id=None, member_epoch=-1) == ErrorCode.NONE


def delete_offset(world, topic):
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    request = OffsetDeleteRequest(
        group_id=GROUP, topics=[OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
    )
    answer = world.ask(world.shard.delete_offsets, ShardContext(0), request)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def test_offsets_of_a_topic_that_is_read_are_not_deleted(world, thread):
    assert delete_offset(world, "orders") is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete_offset(world, "payments") is ErrorCode.NONE
    thread.leave()
    assert delete_offset(world, "orders") is ErrorCode.NONE


def test_a_group_is_listed_described_and_deleted_once_it_is_empty(world, thread):
    assert world.listed() == [(GROUP, "streams", "Stable")]
    described = world.ask(world.shard.describe_streams_group, ShardContext(0), GROUP)
    (member,) = described.members
    assert (member.process_id, described.group_state) == (thread.process_id, "Stable")
    assert member.assignment == member.target_assignment
    assert world.delete().error_code == ErrorCode.NON_EMPTY_GROUP
    thread.leave()
    assert world.listed() == [(GROUP, "streams", "Empty")]
    assert world.delete().error_code == ErrorCode.NONE
    assert world.listed() == []
    assert world.reloaded_shard().state.of(StreamsGroup) == {}


def test_a_description_of_another_group_is_refused(world):
    consumer = world.consumer("orders")
    consumer.beat()
    for group_id, words in ((GROUP, "is not a streams group"), ("none", "not found")):
        answer = world.ask(world.shard.describe_streams_group, ShardContext(0), group_id)
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert words in answer.error_message


def test_no_member_of_another_protocol_joins(world, thread):
    assert world.consumer("orders").error() is ErrorCode.GROUP_ID_NOT_FOUND
    classic = Client(world, "classic")
    classic.join()
    assert classic.join_error() is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    thread.leave()
    assert world.consumer("orders").error() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_classic_member_replaces_a_group_without_members(world, thread):
    thread.leave()
    Client(world, "classic").join()
    assert world.listed() == [(GROUP, "classic", "PreparingRebalance")]
    assert world.reloaded_shard().state.of(StreamsGroup) == {}
    assert world.thread().error() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_without_members_and_offsets_expires(world, thread):
    thread.commit("orders", 0)
    thread.leave()
    world.take(world.shard.expire_offsets(world.now.timestamp_ms))
    assert world.listed()
    week_ms = 8 * 24 * 3_600_000
    world.take(world.shard.expire_offsets(world.now.timestamp_ms + week_ms))
    assert world.listed() == []


def test_topic_ids_do_not_matter_to_a_commit(world, thread):
    request = {"generation_id_or_member_epoch": thread.member_epoch}
    assert thread.commit("orders", 1, **request) is ErrorCode.NONE
    assert topic_id("orders") in world.image.topics.by_id


def test_states_have_the_numbers_of_kafka_s_records():
    assert {state.name: state.value for state in MemberState} == {
        "STABLE": 1,
        "UNREVOKED_TASKS": 2,
        "UNRELEASED_TASKS": 3,
        "UNKNOWN": 127,
    }
