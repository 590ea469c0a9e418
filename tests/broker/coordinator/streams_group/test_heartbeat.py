"""StreamsGroupHeartbeat: members join, get tasks, give them up, leave, and are refused."""

import pytest

from broker.coordinator.group_state.config import GroupConfig, StreamsGroupConfig
from broker.coordinator.streams_group.configured_topology import StatusCode
from broker.metadata.features import STREAMS_VERSION
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from common.kafka.protocol.records.metadata import FeatureLevelRecord
from tests.lib.streams_group_scenario import StreamsScenario, topology

ALL = {("0", 0), ("0", 1), ("1", 0), ("1", 1)}


@pytest.fixture
def world() -> StreamsScenario:
    world = StreamsScenario()
    world.topics(orders=2)
    return world


def test_internal_topics_are_created_before_the_first_assignment(world):
    thread = world.thread()
    answer = thread.send()
    assert answer.response.member_epoch == 1
    assert answer.response.active_tasks == []
    assert [(each.name, each.partition_count) for each in answer.missing_topics] == [
        ("by-key", 2),
        ("counts", 2),
    ]
    codes = [status.status_code for status in answer.response.status]
    assert codes == [StatusCode.ASSIGNMENT_DELAYED, StatusCode.MISSING_INTERNAL_TOPICS]
    assert world.streams_group.state.value == "NotReady"
    world.settle(thread)
    assert set(thread.active) == ALL
    assert thread.statuses == []


def test_a_second_member_gets_its_half_once_the_first_has_given_it_up(world):
    first, second = world.thread(), world.thread()
    world.settle(first)
    second.beat()
    world.advance(1_000)
    second.beat()
    assert not second.active
    first.beat()
    assert len(first.active) == 2
    second.beat()
    assert not second.active, "the first has not confirmed it"
    first.beat()
    second.beat()
    assert set(first.active) | set(second.active) == ALL
    assert len(second.active) == 2


def test_standby_tasks_are_in_other_processes(world):
    world.set_group(num_standby_replicas="1")
    threads = [world.thread("a"), world.thread("a"), world.thread("b")]
    world.settle(*threads)
    stateful = {task for task in ALL if task[0] == "1"}
    assert {task for thread in threads for task in thread.standby} == stateful
    for thread in threads:
        near = [each for each in threads if each.process_id == thread.process_id]
        assert not set(thread.standby) & {task for each in near for task in each.active}


def test_a_change_of_the_number_of_standbys_is_a_new_assignment(world):
    threads = [world.thread(), world.thread()]
    world.settle(*threads)
    epoch = world.streams_group.group_epoch
    world.set_group(num_standby_replicas="1")
    world.settle(*threads)
    assert world.streams_group.group_epoch == epoch + 1
    assert all(thread.standby for thread in threads)


def test_a_missing_source_topic_is_told(world):
    thread = world.thread(topology=topology(source_topics=["gone"]))
    thread.beat()
    assert StatusCode.MISSING_SOURCE_TOPICS in thread.statuses
    world.topics(gone=1)
    world.settle(thread)
    assert set(thread.active) == ALL


def test_a_topic_that_grows_makes_new_tasks_only_if_the_internal_topics_fit(world):
    thread = world.thread()
    world.settle(thread)
    world.topics(orders=3)
    thread.beat()
    assert StatusCode.INCORRECTLY_PARTITIONED_TOPICS in thread.statuses
    world.topics(**{"by-key": 3, "counts": 3})
    world.settle(thread)
    assert len(thread.active) == 6


def test_a_member_that_is_silent_loses_its_tasks(world):
    first, second = world.thread(), world.thread()
    world.settle(first, second)
    for _ in range(50):
        world.advance(1_000)
        first.beat()
    assert set(first.active) == ALL


def test_a_member_that_gives_nothing_up_is_removed(world):
    first = world.thread(rebalance_timeout_ms=5_000)
    world.settle(first)
    second = world.thread()
    second.beat()
    world.advance(1_000)
    second.beat()
    kept = first.active
    first.beat()
    for _ in range(6):
        world.advance(1_000)
        first.send(active_tasks=[TaskIds(subtopology_id=n, partitions=[p]) for n, p in kept])
    assert first.member_id not in world.streams_group.members


def test_the_previous_epoch_is_good_if_the_answer_was_lost(world):
    first, second = world.thread(), world.thread()
    world.settle(first)
    second.beat()
    first.beat()
    world.advance(2_000)
    first.send()  # the answer is lost
    assert first.error() == ErrorCode.NONE
    assert first.error(member_epoch=first.member_epoch - 1) == ErrorCode.FENCED_MEMBER_EPOCH
    assert first.error(member_epoch=first.member_epoch + 9) == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_shutdown_is_told_to_all_until_the_group_is_empty(world):
    first, second = world.thread(), world.thread()
    world.settle(first, second)
    first.leave(shutdown_application=True)
    second.beat()
    assert StatusCode.SHUTDOWN_APPLICATION in second.statuses
    second.leave()
    second.beat()
    assert StatusCode.SHUTDOWN_APPLICATION not in second.statuses


def test_endpoints_are_told_when_tasks_have_moved(world):
    first = world.thread(endpoint=Endpoint(host="a", port=1))
    second = world.thread(endpoint=Endpoint(host="b", port=2))
    world.settle(first, second)
    response = first.send(endpoint_information_epoch=-1).response
    found = {
        (each.user_endpoint.host, topic.topic, partition)
        for each in response.partitions_by_user_endpoint
        for topic in each.active_partitions
        for partition in topic.partitions
    }
    assert {place[1:] for place in found} == {
        (topic, partition) for topic in ("orders", "by-key") for partition in (0, 1)
    }
    told = first.send(endpoint_information_epoch=response.endpoint_information_epoch).response
    assert told.partitions_by_user_endpoint is None


def test_a_group_survives_a_change_of_its_coordinator(world):
    threads = [world.thread(), world.thread()]
    world.settle(*threads)
    tasks = [thread.active for thread in threads]
    world.reload()
    world.settle(*threads)
    assert [thread.active for thread in threads] == tasks


def test_a_rejoining_process_starts_from_nothing(world):
    first, second = world.thread(), world.thread()
    world.settle(first, second)
    second.member_epoch, second.process_id = 0, "restarted"
    second.active = second.standby = frozenset()
    world.settle(first, second)
    assert set(first.active) | set(second.active) == ALL


def invalid(**changes) -> Topology:
    return topology(**changes)


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        (ErrorCode.INVALID_REQUEST, {"group_id": ""}),
        (ErrorCode.INVALID_REQUEST, {"member_id": ""}),
        (ErrorCode.INVALID_REQUEST, {"rack_id": ""}),
        (ErrorCode.INVALID_REQUEST, {"instance_id": "i"}),
        (ErrorCode.INVALID_REQUEST, {"member_epoch": -2}),
        (ErrorCode.INVALID_REQUEST, {"member_epoch": -3, "topology": None}),
        (ErrorCode.INVALID_REQUEST, {"rebalance_timeout_ms": -1}),
        (ErrorCode.INVALID_REQUEST, {"topology": None}),
        (ErrorCode.INVALID_REQUEST, {"active_tasks": None}),
        (ErrorCode.INVALID_REQUEST, {"active_tasks": [TaskIds(subtopology_id="0")]}),
        (ErrorCode.INVALID_REQUEST, {"warmup_tasks": [TaskIds(subtopology_id="0")]}),
        (ErrorCode.INVALID_REQUEST, {"task_offsets": [TaskOffset()]}),
        (ErrorCode.INVALID_REQUEST, {"task_end_offsets": []}),
        (ErrorCode.INVALID_REQUEST, {"topology": topology(epoch=-1)}),
        (ErrorCode.INVALID_REQUEST, {"topology": invalid(source_topic_regex=["o.*"])}),
        (ErrorCode.INVALID_REQUEST, {"client_id": "x", "process_id": "p" * 40_000}),
        (ErrorCode.GROUP_ID_NOT_FOUND, {"member_epoch": 5, "topology": None}),
        (
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            {"topology": invalid(state_changelog_topics=[TopicInfo(name="c", partitions=3)])},
        ),
        (ErrorCode.STREAMS_INVALID_TOPOLOGY, {"topology": invalid(source_topics=["a b"])}),
        (
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            {"topology": invalid(source_topics=["__consumer_offsets"])},
        ),
        (ErrorCode.STREAMS_INVALID_TOPOLOGY, {"topology": invalid(subtopology_id="0")}),
        (
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            {"topology": invalid(repartition_source_topics=[TopicInfo(name="never-written")])},
        ),
        (ErrorCode.STREAMS_INVALID_TOPOLOGY, {"topology": invalid(repartition_source_topics=[])}),
        (
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            {
                "topology": Topology(
                    subtopologies=[
                        Subtopology(subtopology_id=f"{n}", source_topics=["orders"])
                        for n in range(1_001)
                    ]
                )
            },
        ),
        (
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            {"topology": invalid(source_topics=["orders"] * 10_001)},
        ),
    ],
)
def test_a_request_is_refused_and_nothing_has_moved(world, code, changes):
    changes.pop("client_id", None)
    assert world.thread().error(**changes) == code
    assert world.streams_group is None
    assert world.log == []


def test_another_topology_is_refused_and_an_older_one_is_told_that_it_is_stale(world):
    world.settle(world.thread(topology=topology(epoch=3)))
    other = topology(epoch=3, state_changelog_topics=[TopicInfo(name="other")])
    assert world.thread(topology=other).error() == ErrorCode.INVALID_REQUEST
    assert world.thread(topology=topology(epoch=4)).error() == ErrorCode.INVALID_REQUEST
    stale = world.thread(topology=topology(epoch=2))
    stale.beat()
    assert StatusCode.STALE_TOPOLOGY in stale.statuses


def test_tasks_that_the_topology_does_not_have_are_refused(world):
    thread = world.thread()
    world.settle(thread)
    for tasks in (("2", 0), ("0", 2), ("0", -1)):
        wrong = [TaskIds(subtopology_id=tasks[0], partitions=[tasks[1]])]
        assert thread.error(active_tasks=wrong) == ErrorCode.INVALID_REQUEST
    assert thread.error(topology=topology()) == ErrorCode.INVALID_REQUEST
    assert thread.error(process_id="other") == ErrorCode.INVALID_REQUEST


def test_a_topology_with_too_many_tasks_is_not_assigned(world):
    world.topics(many=50_000)
    thread = world.thread(topology=topology(source_topics=["many"]))
    thread.beat()
    assert StatusCode.INCORRECTLY_PARTITIONED_TOPICS in thread.statuses


def test_a_full_group_is_refused(world):
    small = StreamsScenario(config=GroupConfig(streams=StreamsGroupConfig(max_size=1)))
    small.topics(orders=1)
    first = small.thread()
    small.settle(first)
    assert small.thread().error() == ErrorCode.GROUP_MAX_SIZE_REACHED
    first.member_epoch = 0
    assert first.error() == ErrorCode.NONE


def test_without_the_feature_nothing_is_served(world):
    world.image.replay(FeatureLevelRecord(name=STREAMS_VERSION, feature_level=0))
    assert world.thread().error() == ErrorCode.UNSUPPORTED_VERSION


def test_a_group_of_another_kind_is_not_joined(world):
    consumer = world.consumer("orders")
    consumer.beat()
    assert world.thread().error() == ErrorCode.GROUP_ID_NOT_FOUND
