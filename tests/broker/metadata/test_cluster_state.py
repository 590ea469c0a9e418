"""The handlers of `ClusterState`: what is refused with which code."""

import pytest

from broker.errors import ErrorCode, KafkaError
from broker.metadata.cluster import ClusterState
from broker.metadata.configs import APPEND, DELETE, SET, SUBTRACT, apply_operation
from broker.metadata.producer_ids import BLOCK_SIZE
from broker.metadata.topics import TopicDefaults
from broker.protocol.message import Message
from broker.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsTopic,
)
from broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from broker.protocol.records.metadata import decode_metadata_record, encode_metadata_record

ONE_BROKER = TopicDefaults(partition_count=2, replication_factor=1, broker_ids=(1,))
THREE_BROKERS = TopicDefaults(partition_count=2, replication_factor=3, broker_ids=(1, 2, 3))


class Cluster:
    """A state whose records go through bytes before they are replayed, as they do on disk."""

    def __init__(self, defaults: TopicDefaults = ONE_BROKER) -> None:
        self.state = ClusterState()
        self.defaults = defaults
        self.records: list[bytes] = []
        self._topic_count = 0

    def apply(self, records: list[Message]) -> None:
        for record in records:
            encoded = encode_metadata_record(record)
            self.records.append(encoded)
            self.state.replay(decode_metadata_record(encoded))

    def create(self, name: str, partitions: int = -1, factor: int = -1, **more: object) -> bytes:
        self._topic_count += 1
        topic_id = self._topic_count.to_bytes(16, "big")
        topic = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=factor, **more
        )
        created = self.state.topics.create(topic, topic_id=topic_id, defaults=self.defaults)
        self.apply(created.records)
        return topic_id

    def refusal(self, name: str, *arguments: int, **more: object) -> ErrorCode:
        before = list(self.records)
        with pytest.raises(KafkaError) as refused:
            self.create(name, *arguments, **more)
        assert self.records == before
        return refused.value.code


def test_a_created_topic_has_its_partitions_and_settings() -> None:
    cluster = Cluster()
    config = CreatableTopicConfig(name="retention.ms", value="5")
    topic_id = cluster.create("orders", 3, 1, configs=[config])
    image = cluster.state.topics.by_name["orders"]
    assert image is cluster.state.topics.by_id[topic_id]
    assert sorted(image.partitions) == [0, 1, 2]
    assert image.partitions[0].leader == 1
    assert cluster.state.configs.settings_of(2, "orders") == {"retention.ms": "5"}


def test_minus_one_means_the_defaults() -> None:
    cluster = Cluster(THREE_BROKERS)
    cluster.create("orders")
    image = cluster.state.topics.by_name["orders"]
    assert len(image.partitions) == 2
    assert image.replication_factor == 3


def test_leaders_are_spread_over_the_brokers() -> None:
    cluster = Cluster(THREE_BROKERS)
    cluster.create("orders", 6)
    leaders = [part.leader for part in cluster.state.topics.by_name["orders"].partitions.values()]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]


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
        ("__cluster_metadata", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("orders", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("order_lines", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_name_that_cannot_be_is_refused(name: str, code: ErrorCode) -> None:
    cluster = Cluster()
    cluster.create("orders")
    cluster.create("order.lines")
    assert cluster.refusal(name) == code


def test_the_longest_name_is_fine() -> None:
    Cluster().create("x" * 249)


@pytest.mark.parametrize(
    ("partitions", "factor", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (2**31 - 1, 1, ErrorCode.POLICY_VIOLATION),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 2, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_counts_out_of_range_are_refused(partitions: int, factor: int, code: ErrorCode) -> None:
    assert Cluster().refusal("orders", partitions, factor) == code


def assignment(*replicas: list[int]) -> list[CreatableReplicaAssignment]:
    return [
        CreatableReplicaAssignment(partition_index=index, broker_ids=broker_ids)
        for index, broker_ids in enumerate(replicas)
    ]


def test_a_manual_assignment_is_taken_as_it_is() -> None:
    cluster = Cluster(THREE_BROKERS)
    cluster.create("orders", assignments=assignment([3, 1], [2, 3]))
    partitions = cluster.state.topics.by_name["orders"].partitions
    assert [partition.replicas for partition in partitions.values()] == [(3, 1), (2, 3)]
    assert partitions[0].leader == 3


@pytest.mark.parametrize(
    ("replicas", "partitions", "factor", "code"),
    [
        (([1],), 1, -1, ErrorCode.INVALID_REQUEST),
        (([1],), -1, 1, ErrorCode.INVALID_REQUEST),
        (([9],), -1, -1, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (([1, 1],), -1, -1, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (([1], [1, 2]), -1, -1, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (([],), -1, -1, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_a_bad_manual_assignment_is_refused(
    replicas: tuple[list[int], ...], partitions: int, factor: int, code: ErrorCode
) -> None:
    cluster = Cluster(THREE_BROKERS)
    assert cluster.refusal("o", partitions, factor, assignments=assignment(*replicas)) == code


def test_a_gap_in_a_manual_assignment_is_refused() -> None:
    gap = [CreatableReplicaAssignment(partition_index=1, broker_ids=[1])]
    assert Cluster().refusal("o", assignments=gap) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("value", ["-5", "soon", None])
def test_a_bad_setting_is_refused(value: str | None) -> None:
    config = CreatableTopicConfig(name="segment.ms", value=value)
    assert Cluster().refusal("orders", configs=[config]) == ErrorCode.INVALID_CONFIG


def test_an_unknown_setting_is_refused() -> None:
    config = CreatableTopicConfig(name="retention.weeks", value="1")
    assert Cluster().refusal("orders", configs=[config]) == ErrorCode.INVALID_CONFIG


def test_a_deleted_topic_leaves_nothing_and_its_name_is_free() -> None:
    cluster = Cluster()
    config = CreatableTopicConfig(name="retention.ms", value="5")
    topic_id = cluster.create("orders.v1", configs=[config])
    cluster.apply(cluster.state.topics.delete(topic_id))
    assert cluster.state.topics.by_name == {}
    assert cluster.state.configs.settings_of(2, "orders.v1") == {}
    cluster.create("orders_v1")
    with pytest.raises(KafkaError) as refused:
        cluster.state.topics.delete(topic_id)
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_ID


def test_partitions_are_added_and_never_taken_away() -> None:
    cluster = Cluster(THREE_BROKERS)
    cluster.create("orders", 2)
    wanted = CreatePartitionsTopic(name="orders", count=5, assignments=None)
    cluster.apply(cluster.state.topics.add_partitions(wanted, cluster.defaults))
    image = cluster.state.topics.by_name["orders"]
    assert sorted(image.partitions) == [0, 1, 2, 3, 4]
    assert all(len(partition.replicas) == 3 for partition in image.partitions.values())
    for count in (5, 4, 0, -1):
        fewer = CreatePartitionsTopic(name="orders", count=count, assignments=None)
        with pytest.raises(KafkaError) as refused:
            cluster.state.topics.add_partitions(fewer, cluster.defaults)
        assert refused.value.code == ErrorCode.INVALID_PARTITIONS


def test_assignments_of_added_partitions_must_match_their_number() -> None:
    cluster = Cluster()
    cluster.create("orders", 1)
    one = [CreatePartitionsAssignment(broker_ids=[1])]
    wanted = CreatePartitionsTopic(name="orders", count=3, assignments=one)
    with pytest.raises(KafkaError) as refused:
        cluster.state.topics.add_partitions(wanted, cluster.defaults)
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_producer_ids_are_given_out_once_across_restarts() -> None:
    cluster = Cluster()
    first, records = cluster.state.producer_ids.next_block(1, 1)
    cluster.apply(records)
    restarted = ClusterState()
    for record in cluster.records:
        restarted.replay(decode_metadata_record(record))
    second, _ = restarted.producer_ids.next_block(1, 1)
    assert first == range(BLOCK_SIZE)
    assert second.start == first.stop


def test_replaying_all_records_gives_an_equal_state() -> None:
    cluster = Cluster(THREE_BROKERS)
    ids = [cluster.create(f"topic-{number}", number + 1) for number in range(5)]
    cluster.apply(cluster.state.topics.delete(ids[2]))
    cluster.apply(cluster.state.configs.change((2, "topic-1"), {"retention.ms": "7"}))
    fresh = ClusterState()
    for record in cluster.records:
        fresh.replay(decode_metadata_record(record))
    assert fresh.topics.by_name == cluster.state.topics.by_name
    assert fresh.topics.by_id == cluster.state.topics.by_id
    assert fresh.configs.settings_of(2, "topic-1") == {"retention.ms": "7"}


@pytest.mark.parametrize(
    ("operation", "value", "expected"),
    [
        (SET, "delete,compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (APPEND, "delete", "delete"),
        (SUBTRACT, "delete", ""),
        (DELETE, None, None),
    ],
)
def test_list_operations(operation: int, value: str | None, expected: str | None) -> None:
    changed = apply_operation(
        {},
        name="cleanup.policy",
        operation=operation,
        value=value,
        default="delete",
        is_list=True,
    )
    assert changed.get("cleanup.policy") == expected


@pytest.mark.parametrize(
    ("operation", "value", "code"),
    [
        (APPEND, "1", ErrorCode.INVALID_CONFIG),
        (SET, None, ErrorCode.INVALID_REQUEST),
        (9, "1", ErrorCode.INVALID_REQUEST),
    ],
)
def test_operations_that_make_no_sense_are_refused(
    operation: int, value: str | None, code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refused:
        apply_operation({}, name="x", operation=operation, value=value, default="", is_list=False)
    assert refused.value.code == code
