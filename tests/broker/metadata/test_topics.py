"""Topics are created, grow and go: what is refused with which code, and what is then there."""

from typing import Any

import pytest

from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from common.kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreateTopicsRequest,
)
from common.kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.lib.controlled_cluster import ControlledCluster


def config(name: str, value: str | None) -> CreatableTopicConfig:
    return CreatableTopicConfig(name=name, value=value)


def test_a_created_topic_has_its_partitions_and_settings() -> None:
    cluster = ControlledCluster(1)
    result = cluster.create("orders", num_partitions=3, configs=[config("retention.ms", "5")])
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 3, 1)
    image = cluster.image.topics.by_name["orders"]
    assert image is cluster.image.topics.by_id[result.topic_id]
    assert sorted(image.partitions) == [0, 1, 2]
    assert cluster.partition("orders").leader == 1
    assert cluster.partition("orders").directories == (b"directory 000001",)
    assert cluster.image.configs.settings_of(2, "orders") == {"retention.ms": "5"}


def test_minus_one_means_the_defaults() -> None:
    cluster = ControlledCluster(1, 2, 3, partition_count=4, replication_factor=2)
    result = cluster.create("orders")
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_leaders_are_spread_over_the_brokers() -> None:
    cluster = ControlledCluster(1, 2, 3)
    cluster.create("orders", num_partitions=6)
    leaders = [part.leader for part in cluster.image.topics.by_name["orders"].partitions.values()]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]


def test_a_fenced_broker_gets_no_partition() -> None:
    cluster = ControlledCluster(1, 2)
    cluster.lose(1)
    cluster.create("orders", num_partitions=4)
    replicas = {
        part.replicas for part in cluster.image.topics.by_name["orders"].partitions.values()
    }
    assert replicas == {(2,)}


def test_validating_only_changes_nothing_and_tells_the_same() -> None:
    cluster = ControlledCluster(1)
    before = len(cluster.log)
    topic = CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
    answer = cluster.ask(CreateTopicsRequest(topics=[topic], validate_only=True)).topics[0]
    assert (answer.error_code, answer.num_partitions, answer.topic_id) == (0, 2, bytes(16))
    assert len(cluster.log) == before


def test_the_settings_of_a_created_topic_are_told() -> None:
    def describe(own: Any) -> list[CreatableTopicConfigs]:
        return [CreatableTopicConfigs(name=name, value=value) for name, value in own.items()]

    cluster = ControlledCluster(1, describe_topic_settings=describe)
    answer = cluster.create("orders", configs=[config("retention.ms", "5")])
    assert [(told.name, told.value) for told in answer.configs] == [("retention.ms", "5")]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (".", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("..", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("../x", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a\0b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("größe", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a\n", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 250, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("__cluster_metadata", ErrorCode.INVALID_REQUEST),
        ("orders", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("order_lines", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 249, ErrorCode.NONE),
    ],
)
def test_a_name_that_cannot_be_is_refused(name: str, code: ErrorCode) -> None:
    cluster = ControlledCluster(1)
    cluster.create("orders")
    cluster.create("order.lines")
    assert cluster.create(name).error_code == code


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"num_partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"num_partitions": -2}, ErrorCode.INVALID_PARTITIONS),
        ({"num_partitions": 2**31 - 1}, ErrorCode.POLICY_VIOLATION),
        ({"replication_factor": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": -2}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 4}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"configs": [config("segment.ms", "-5")]}, ErrorCode.INVALID_CONFIG),
        ({"configs": [config("segment.ms", "soon")]}, ErrorCode.INVALID_CONFIG),
        ({"configs": [config("segment.ms", None)]}, ErrorCode.INVALID_CONFIG),
        ({"configs": [config("retention.weeks", "1")]}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_what_cannot_be_is_refused_and_writes_nothing(more: Any, code: ErrorCode) -> None:
    cluster = ControlledCluster(1, 2, 3)
    before = len(cluster.log)
    assert cluster.create("orders", **more).error_code == code
    assert len(cluster.log) == before


@pytest.mark.parametrize(
    ("replicas", "more", "code"),
    [
        (([3, 1], [2, 3]), {}, ErrorCode.NONE),
        (([1],), {"num_partitions": 1}, ErrorCode.INVALID_REQUEST),
        (([1],), {"replication_factor": 1}, ErrorCode.INVALID_REQUEST),
        (([9],), {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (([1, 1],), {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (([1], [1, 2]), {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (([],), {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (([4],), {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (([4, 1],), {}, ErrorCode.NONE),
    ],
)
def test_manual_assignments(replicas: Any, more: Any, code: ErrorCode) -> None:
    cluster = ControlledCluster(1, 2, 3, 4)
    cluster.lose(4)
    assert cluster.create("orders", *replicas, **more).error_code == code
    if code == ErrorCode.NONE:
        image = cluster.image.topics.by_name["orders"]
        assert [part.replicas for part in image.partitions.values()] == list(map(tuple, replicas))
        alive = [broker_id for broker_id in replicas[0] if broker_id != 4]
        assert cluster.partition("orders").isr == tuple(alive)
        assert cluster.partition("orders").leader == alive[0]


@pytest.mark.parametrize("indexes", [(1,), (0, 0), (0, 2), (-1, 0)])
def test_a_manual_assignment_has_no_gap(indexes: tuple[int, ...]) -> None:
    cluster = ControlledCluster(1)
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in indexes
    ]
    answer = cluster.create("orders", assignments=assignments)
    assert answer.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_each_topic_of_a_request_is_for_itself_but_a_name_given_twice_is_refused() -> None:
    cluster = ControlledCluster(1)
    names = ["good", "bad name", "twice", "twice", "a.b", "a_b"]
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    answers = cluster.ask(CreateTopicsRequest(topics=topics)).topics
    assert [(answer.name, answer.error_code) for answer in answers] == [
        ("good", ErrorCode.NONE),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a.b", ErrorCode.NONE),
        ("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("twice", ErrorCode.INVALID_REQUEST),
    ]
    assert sorted(cluster.image.topics.by_name) == ["a.b", "good"]


# --- delete ---


def delete(cluster: ControlledCluster, *wanted: str | bytes, version: int = 6) -> list[Any]:
    if version < 6:
        request = DeleteTopicsRequest(topic_names=[str(name) for name in wanted])
    else:
        states = [
            DeleteTopicState(name=name)
            if isinstance(name, str)
            else DeleteTopicState(name=None, topic_id=name)
            for name in wanted
        ]
        request = DeleteTopicsRequest(topics=states)
    answers = cluster.ask(request, version).responses
    return [(answer.name or answer.topic_id, answer.error_code) for answer in answers]


def test_a_deleted_topic_leaves_nothing_and_its_name_is_free() -> None:
    cluster = ControlledCluster(1)
    topic_id = cluster.create("orders.v1", configs=[config("retention.ms", "5")]).topic_id
    assert delete(cluster, "orders.v1", version=3) == [("orders.v1", 0)]
    assert cluster.image.topics.by_name == {}
    assert cluster.image.configs.settings_of(2, "orders.v1") == {}
    assert cluster.create("orders_v1").error_code == 0
    assert delete(cluster, topic_id) == [(topic_id, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert delete(cluster, "orders.v1") == [("orders.v1", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


def test_a_topic_is_deleted_by_its_id() -> None:
    cluster = ControlledCluster(1)
    topic_id = cluster.create("orders").topic_id
    assert delete(cluster, topic_id) == [("orders", 0)]
    assert cluster.image.topics.by_id == {}


def test_what_is_named_twice_is_not_deleted() -> None:
    cluster = ControlledCluster(1)
    one, two = cluster.create("one").topic_id, cluster.create("two").topic_id
    assert delete(cluster, "one", "one") == [("one", ErrorCode.INVALID_REQUEST)]
    assert delete(cluster, two, two) == [(two, ErrorCode.INVALID_REQUEST)]
    assert delete(cluster, "one", one) == [("one", ErrorCode.INVALID_REQUEST)]
    assert delete(cluster, bytes(16)) == [(bytes(16), ErrorCode.INVALID_REQUEST)]
    assert len(cluster.image.topics.by_id) == 2


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_deleting_may_be_forbidden(version: int, code: ErrorCode) -> None:
    cluster = ControlledCluster(1, delete_topic=False)
    cluster.create("orders")
    assert delete(cluster, "orders", version=version) == [("orders", code)]


# --- more partitions ---


def grow(cluster: ControlledCluster, count: int, *assigned: list[int], **more: Any) -> Any:
    assignments = [CreatePartitionsAssignment(broker_ids=each) for each in assigned]
    topic = CreatePartitionsTopic(name="orders", count=count, assignments=assignments or None)
    return cluster.ask(CreatePartitionsRequest(topics=[topic], **more)).results[0].error_code


def test_partitions_are_added_and_never_taken_away() -> None:
    cluster = ControlledCluster(1, 2, 3)
    cluster.create("orders", num_partitions=2, replication_factor=3)
    assert grow(cluster, 5, validate_only=True) == 0
    assert len(cluster.image.topics.by_name["orders"].partitions) == 2
    assert grow(cluster, 5) == 0
    image = cluster.image.topics.by_name["orders"]
    assert sorted(image.partitions) == [0, 1, 2, 3, 4]
    assert all(len(partition.replicas) == 3 for partition in image.partitions.values())
    for count in (5, 4, 0, -1):
        assert grow(cluster, count) == ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize(
    ("count", "assigned", "code"),
    [
        (2, ([2],), ErrorCode.NONE),
        (3, ([1],), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (2, ([1, 2],), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (2, ([7],), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (2**31 - 1, (), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_added_partitions_with_assignments(count: int, assigned: Any, code: ErrorCode) -> None:
    cluster = ControlledCluster(1, 2)
    cluster.create("orders", [1])
    assert grow(cluster, count, *assigned) == code


def test_partitions_of_an_unknown_topic_or_of_one_named_twice_are_refused() -> None:
    cluster = ControlledCluster(1)
    assert grow(cluster, 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = CreatePartitionsTopic(name="orders", count=2, assignments=None)
    answers = cluster.ask(CreatePartitionsRequest(topics=[topic, topic])).results
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST]


def test_replicas_of_a_broker_that_are_not_in_sync_are_counted() -> None:
    cluster = ControlledCluster(1, 2)
    assert cluster.create("orders", [1, 2], [2, 1]).error_code == ErrorCode.NONE
    assert [cluster.image.topics.out_of_sync_count(each) for each in (1, 2)] == [0, 0]
    cluster.lose(2)
    assert [cluster.image.topics.out_of_sync_count(each) for each in (1, 2)] == [0, 2]
