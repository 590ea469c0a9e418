"""Log directories: which one has a replica, and what happens to it when that fails (KIP-858)."""

import pytest

from broker.metadata.parts.brokers import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from tests.lib.controlled_cluster import ControlledCluster

FIRST, SECOND, OF_BROKER_1 = b"a" * 16, b"b" * 16, b"directory 000001"


def with_directories() -> ControlledCluster:
    """Broker 2 has two directories, leads `orders`, and has not told yet where that is."""
    cluster = ControlledCluster(1)
    cluster.start(2, log_dirs=[FIRST, SECOND])
    cluster.create("orders", [2, 1])
    assert cluster.partition("orders").directories == (UNASSIGNED_DIRECTORY, OF_BROKER_1)
    return cluster


def assign(cluster: ControlledCluster, directory: bytes, index: int = 0, broker_id: int = 2) -> int:
    topic = TopicData(
        topic_id=cluster.image.topics.by_name["orders"].topic_id,
        partitions=[PartitionData(partition_index=index)],
    )
    request = AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=cluster.broker(broker_id).epoch,
        directories=[DirectoryData(id=directory, topics=[topic])],
    )
    answer = cluster.ask(request)
    assert answer.error_code == 0
    assert answer.directories[0].id == directory
    return int(answer.directories[0].topics[0].partitions[0].error_code)


def test_a_broker_tells_where_its_replica_is() -> None:
    cluster = with_directories()
    assert assign(cluster, SECOND) == 0
    partition = cluster.partition("orders")
    assert partition.directories == (SECOND, OF_BROKER_1)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (2, 0, (2, 1))
    before = len(cluster.log)
    assert assign(cluster, SECOND) == 0
    assert len(cluster.log) == before


@pytest.mark.parametrize("directory", [b"z" * 16, LOST_DIRECTORY])
def test_a_replica_in_a_directory_that_is_not_online_leads_no_longer(directory: bytes) -> None:
    cluster = with_directories()
    assert assign(cluster, directory) == 0
    partition = cluster.partition("orders")
    assert partition.directories == (directory, OF_BROKER_1)
    assert (partition.leader, partition.isr) == (1, (1,))
    assert len(cluster.last_records) == 1


def test_only_what_was_in_a_failed_directory_moves() -> None:
    cluster = with_directories()
    cluster.create("payments", [2, 1])
    assert assign(cluster, FIRST) == 0
    cluster.heartbeat(2, offline_log_dirs=[FIRST])
    assert cluster.partition("orders").leader == 1
    assert cluster.partition("payments").leader == 2
    assert cluster.broker(2).log_dirs == (SECOND,)


def test_the_failure_of_all_directories_is_recorded_once() -> None:
    """A list without any means "unchanged", so a record of it would come with every heartbeat."""
    cluster = with_directories()
    assert assign(cluster, FIRST) == 0
    cluster.heartbeat(2, offline_log_dirs=[FIRST, SECOND])
    assert cluster.partition("orders").leader == 1
    before = len(cluster.log)
    cluster.heartbeat(2, offline_log_dirs=[FIRST, SECOND])
    assert len(cluster.log) == before


def test_a_directory_that_failed_before_the_broker_serves_is_not_led_from() -> None:
    cluster = with_directories()
    assert assign(cluster, FIRST) == 0
    cluster.lose(1)
    cluster.lose(2)
    assert cluster.partition("orders").leader == -1
    cluster.heartbeat(2, offline_log_dirs=[FIRST])
    cluster.heartbeat(2, offline_log_dirs=[FIRST])
    assert not cluster.broker(2).is_fenced
    assert cluster.partition("orders").leader == -1


def test_what_a_broker_does_not_have_it_cannot_assign() -> None:
    cluster = with_directories()
    cluster.start(3)
    assert assign(cluster, SECOND, index=7) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert assign(cluster, b"directory 000003", broker_id=3) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    nowhere = TopicData(topic_id=b"n" * 16, partitions=[PartitionData(partition_index=0)])
    request = AssignReplicasToDirsRequest(
        broker_id=2,
        broker_epoch=cluster.broker(2).epoch,
        directories=[DirectoryData(id=FIRST, topics=[nowhere])],
    )
    answer = cluster.ask(request).directories[0].topics[0].partitions[0]
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    request.broker_epoch -= 1
    assert cluster.ask(request).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert cluster.partition("orders").directories[0] == UNASSIGNED_DIRECTORY


def test_a_broker_that_comes_back_with_an_empty_disk_is_not_led_from_until_it_is_filled() -> None:
    cluster = with_directories()
    assert assign(cluster, FIRST) == 0
    cluster.lose(2)
    cluster.start(2, incarnation=2, log_dirs=[b"c" * 16, b"d" * 16])
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr) == (1, (1,))
    assert assign(cluster, b"c" * 16) == 0
    assert cluster.partition("orders").directories == (b"c" * 16, OF_BROKER_1)
