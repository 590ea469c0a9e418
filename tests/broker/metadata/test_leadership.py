"""Elections, moves of replicas, in-sync sets, unregistering, failed directories."""

from typing import Any

import pytest

from broker.metadata.features import FEATURES_AT_FORMAT
from broker.metadata.parts.topics import RECOVERED, RECOVERING
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from common.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from common.kafka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from common.kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from common.kafka.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.lib.controlled_cluster import ControlledCluster

PREFERRED, UNCLEAN = range(2)


def elect(
    cluster: ControlledCluster, kind: int, *partitions: tuple[str, int]
) -> list[tuple[str, int, int]]:
    wanted = [TopicPartitions(topic=topic, partitions=[index]) for topic, index in partitions]
    answer = cluster.ask(
        ElectLeadersRequest(election_type=kind, topic_partitions=wanted if partitions else None)
    )
    assert answer.error_code == 0
    return [
        (result.topic, of.partition_id, of.error_code)
        for result in answer.replica_election_results
        for of in result.partition_result
    ]


def set_isr(
    cluster: ControlledCluster, name: str, isr: list[int], version: int = 3, **more: Any
) -> Any:
    """Ask as the leader does, unless told otherwise."""
    partition = cluster.partition(name)
    leader = more.pop("broker_id", partition.leader)
    data = PartitionData(
        partition_index=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        leader_recovery_state=partition.leader_recovery_state,
    )
    if version < 3:
        data.new_isr = isr
    else:
        data.new_isr_with_epochs = [
            BrokerState(broker_id=replica, broker_epoch=cluster.broker(replica).epoch)
            for replica in isr
        ]
    for key, value in more.items():
        setattr(data, key, value)
    topic = TopicData(topic_id=cluster.image.topics.by_name[name].topic_id, partitions=[data])
    request = AlterPartitionRequest(
        broker_id=leader, broker_epoch=cluster.broker(leader).epoch, topics=[topic]
    )
    return cluster.ask(request, version).topics[0].partitions[0]


def set_config(cluster: ControlledCluster, topic: str, name: str, value: str) -> None:
    config = AlterableConfig(name=name, config_operation=0, value=value)
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])
    answer = cluster.ask(IncrementalAlterConfigsRequest(resources=[resource]))
    assert answer.responses[0].error_code == 0


# --- elections ---


def test_the_preferred_replica_leads_again() -> None:
    cluster = ControlledCluster(1, 2)
    cluster.create("orders", [1, 2])
    needed = ("orders", 0, ErrorCode.ELECTION_NOT_NEEDED)
    assert elect(cluster, PREFERRED, ("orders", 0)) == [needed]
    cluster.lose(1)
    unavailable = ("orders", 0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    assert elect(cluster, PREFERRED, ("orders", 0)) == [unavailable]
    cluster.heartbeat(1)
    assert elect(cluster, PREFERRED, ("orders", 0)) == [unavailable]
    assert set_isr(cluster, "orders", [2, 1]).error_code == 0
    assert elect(cluster, PREFERRED) == [("orders", 0, 0)]
    assert cluster.partition("orders").leader == 1
    assert elect(cluster, PREFERRED) == []


def test_a_replica_that_is_not_in_sync_leads_only_when_asked_to() -> None:
    cluster = ControlledCluster(1, 2)
    cluster.create("orders", [1, 2])
    needed = ("orders", 0, ErrorCode.ELECTION_NOT_NEEDED)
    assert elect(cluster, UNCLEAN, ("orders", 0)) == [needed]
    cluster.lose(2)
    cluster.lose(1)
    none = ("orders", 0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    assert elect(cluster, UNCLEAN, ("orders", 0)) == [none]
    cluster.heartbeat(2)
    assert cluster.partition("orders").leader == -1
    assert elect(cluster, UNCLEAN, ("orders", 0)) == [("orders", 0, 0)]
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr) == (2, (2,))
    assert partition.leader_recovery_state == RECOVERING


def test_a_topic_may_allow_unclean_elections() -> None:
    cluster = ControlledCluster(1, 2)
    cluster.create("orders", [1, 2])
    set_config(cluster, "orders", "unclean.leader.election.enable", "true")
    assert set_isr(cluster, "orders", [1]).error_code == 0
    cluster.lose(1)
    assert cluster.partition("orders").leader == 2


def test_elections_of_unknown_partitions_and_kinds_are_refused() -> None:
    cluster = ControlledCluster(1)
    cluster.create("orders", [1])
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert elect(cluster, PREFERRED, ("orders", 7), ("none", 0)) == [
        ("orders", 7, unknown),
        ("none", 0, unknown),
    ]
    answer = cluster.ask(ElectLeadersRequest(election_type=5, topic_partitions=None))
    assert answer.error_code == ErrorCode.INVALID_REQUEST


# --- in-sync sets ---


@pytest.mark.parametrize("version", [2, 3])
def test_a_leader_shrinks_and_grows_its_in_sync_set(version: int) -> None:
    cluster = ControlledCluster(1, 2, 3)
    cluster.create("orders", [1, 2, 3])
    answer = set_isr(cluster, "orders", [1, 2], version)
    assert (answer.error_code, answer.isr, answer.partition_epoch) == (0, [1, 2], 1)
    assert (answer.leader_id, answer.leader_epoch) == (1, 0)
    assert cluster.partition("orders").isr == (1, 2)
    assert set_isr(cluster, "orders", [1, 2, 3], version).partition_epoch == 2
    assert cluster.partition("orders").isr == (1, 2, 3)
    same = set_isr(cluster, "orders", [1, 2, 3], version)
    assert (same.error_code, same.partition_epoch) == (0, 2)


@pytest.mark.parametrize(
    ("isr", "more", "code"),
    [
        ([1], {"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ([1], {"partition_epoch": 99}, ErrorCode.NOT_CONTROLLER),
        ([1], {"leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ([1], {"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
        ([1], {"broker_id": 2}, ErrorCode.INVALID_REQUEST),
        ([2], {}, ErrorCode.INVALID_REQUEST),
        ([1, 1], {}, ErrorCode.INVALID_REQUEST),
        ([1, 4], {}, ErrorCode.INVALID_REQUEST),
        ([1, 3], {}, ErrorCode.INELIGIBLE_REPLICA),
        ([1], {"leader_recovery_state": 7}, ErrorCode.INVALID_REQUEST),
        ([1], {"leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST),
        ([1], {"partition_index": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (
            [1, 2],
            {"new_isr_with_epochs": [BrokerState(broker_id=1), BrokerState(broker_id=2)]},
            ErrorCode.NONE,
        ),
        (
            [1],
            {"new_isr_with_epochs": [BrokerState(broker_id=1, broker_epoch=7)]},
            ErrorCode.INELIGIBLE_REPLICA,
        ),
    ],
)
def test_in_sync_sets_that_cannot_be_are_refused(isr: list[int], more: Any, code: int) -> None:
    cluster = ControlledCluster(1, 2, 3, 4)
    cluster.create("orders", [2, 1, 3])
    cluster.lose(3)
    cluster.lose(2)
    cluster.heartbeat(2)
    assert cluster.partition("orders").leader == 1
    assert set_isr(cluster, "orders", isr, **more).error_code == code


def test_a_leader_that_recovered_says_so() -> None:
    cluster = ControlledCluster(1, 2)
    cluster.create("orders", [1, 2])
    cluster.lose(2)
    cluster.lose(1)
    cluster.heartbeat(2)
    elect(cluster, UNCLEAN)
    cluster.heartbeat(1)
    assert set_isr(cluster, "orders", [2, 1]).error_code == ErrorCode.INVALID_REQUEST
    assert set_isr(cluster, "orders", [2], leader_recovery_state=RECOVERED).error_code == 0
    assert cluster.partition("orders").leader_recovery_state == RECOVERED
    assert set_isr(cluster, "orders", [2, 1]).error_code == 0


def test_a_stale_broker_changes_no_in_sync_set() -> None:
    cluster = ControlledCluster(1)
    answer = cluster.ask(AlterPartitionRequest(broker_id=1, broker_epoch=999))
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH


# --- moves ---


def move(cluster: ControlledCluster, replicas: list[int] | None, **more: Any) -> int:
    topic = ReassignableTopic(
        name=more.pop("topic", "orders"),
        partitions=[ReassignablePartition(partition_index=0, replicas=replicas)],
    )
    answer = cluster.ask(AlterPartitionReassignmentsRequest(topics=[topic], **more), 1)
    return int(answer.responses[0].partitions[0].error_code)


def ongoing(cluster: ControlledCluster, *names: str) -> list[tuple[str, Any, Any, Any]]:
    topics = [ListPartitionReassignmentsTopics(name=name, partition_indexes=[0]) for name in names]
    answer = cluster.ask(ListPartitionReassignmentsRequest(topics=topics or None))
    return [
        (topic.name, each.replicas, each.adding_replicas, each.removing_replicas)
        for topic in answer.topics
        for each in topic.partitions
    ]


def test_a_move_goes_on_until_the_new_replicas_are_in_sync() -> None:
    cluster = ControlledCluster(1, 2, 3)
    cluster.create("orders", [1, 2])
    assert move(cluster, [3, 2]) == 0
    told = [("orders", [3, 2, 1], [3], [1])]
    assert ongoing(cluster) == ongoing(cluster, "orders", "none") == told
    answer = set_isr(cluster, "orders", [1, 2, 3])
    # The leader is one of those that go: it is told that it leads no longer.
    assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED
    partition = cluster.partition("orders")
    assert (partition.replicas, partition.isr, partition.leader) == ((3, 2), (2, 3), 3)
    assert ongoing(cluster) == []


def test_a_move_that_replaces_another_forgets_what_was_only_coming() -> None:
    cluster = ControlledCluster(1, 2, 3, 4)
    cluster.create("orders", [1, 2])
    assert move(cluster, [3]) == 0
    assert ongoing(cluster) == [("orders", [3, 1, 2], [3], [1, 2])]
    assert move(cluster, [4, 1]) == 0
    assert ongoing(cluster) == [("orders", [4, 1, 2], [4], [2])]
    assert move(cluster, None) == 0
    assert cluster.partition("orders").replicas == (1, 2)


def test_a_new_replica_that_alone_is_in_sync_outlives_its_move() -> None:
    cluster = ControlledCluster(1, 2, 3)
    cluster.create("orders", [1])
    assert move(cluster, [2, 3]) == 0
    assert set_isr(cluster, "orders", [1, 2]).error_code == 0
    cluster.lose(1)
    assert move(cluster, [3]) == 0
    assert ongoing(cluster) == [("orders", [3, 1, 2], [3], [1, 2])]
    assert cluster.partition("orders").leader == 2


def test_a_move_is_cancelled() -> None:
    cluster = ControlledCluster(1, 2, 3)
    cluster.create("orders", [1, 2])
    assert move(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    before = cluster.partition("orders")
    assert move(cluster, [3, 1]) == 0
    assert move(cluster, None) == 0
    after = cluster.partition("orders")
    assert (after.replicas, after.isr, after.is_reassigning) == ((1, 2), before.isr, False)


def test_going_back_to_replicas_that_are_not_in_sync_needs_leave() -> None:
    cluster = ControlledCluster(1, 2, 3)
    cluster.create("orders", [1])
    move(cluster, [2, 3])
    assert set_isr(cluster, "orders", [1, 2]).error_code == 0
    cluster.lose(1)
    assert cluster.partition("orders").isr == (2,)
    assert move(cluster, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    set_config(cluster, "orders", "unclean.leader.election.enable", "true")
    assert move(cluster, None) == 0
    assert cluster.partition("orders").replicas == (1,)


def test_going_back_to_a_replica_that_is_not_there_leaves_nobody_in_sync() -> None:
    cluster = ControlledCluster(1, 2, 3, features_at_format=FEATURES_AT_FORMAT)
    cluster.create("orders", [1])
    set_config(cluster, "orders", "unclean.leader.election.enable", "true")
    move(cluster, [2, 3])
    set_isr(cluster, "orders", [1, 2])
    cluster.lose(1)
    assert move(cluster, None) == 0
    after = cluster.partition("orders")
    # A broker that is no longer a replica is not kept as the last known leader.
    assert (after.replicas, after.isr, after.leader, after.last_known_elr) == ((1,), (), -1, ())
    cluster.start(1, incarnation=2)
    assert cluster.partition("orders").leader == 1


def test_going_back_uncleanly_prefers_a_replica_that_is_there() -> None:
    cluster = ControlledCluster(1, 2, 3, 4)
    cluster.create("orders", [1, 4])
    set_config(cluster, "orders", "unclean.leader.election.enable", "true")
    move(cluster, [2, 3])
    assert set_isr(cluster, "orders", [1, 2]).error_code == 0
    cluster.lose(1)
    assert move(cluster, None) == 0
    assert (cluster.partition("orders").isr, cluster.partition("orders").leader) == ((4,), 4)


@pytest.mark.parametrize(
    ("replicas", "more", "code"),
    [
        ([1, 2], {}, ErrorCode.NONE),
        ([], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([9], {}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([3], {"topic": "none"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ([3], {"allow_replication_factor_change": False}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ([3, 1], {"allow_replication_factor_change": False}, ErrorCode.NONE),
    ],
)
def test_moves_that_cannot_be_are_refused(replicas: list[int], more: Any, code: int) -> None:
    cluster = ControlledCluster(1, 2, 3)
    cluster.create("orders", [1, 2])
    assert move(cluster, replicas, **more) == code


def test_a_partition_that_is_named_twice_moves_once() -> None:
    cluster = ControlledCluster(1, 2)
    cluster.create("orders", [1])
    wanted = ReassignablePartition(partition_index=0, replicas=[2])
    topic = ReassignableTopic(name="orders", partitions=[wanted, wanted])
    answer = cluster.ask(AlterPartitionReassignmentsRequest(topics=[topic]), 1)
    codes = [each.error_code for each in answer.responses[0].partitions]
    assert codes == [0, ErrorCode.INVALID_REQUEST]


# --- brokers that go for good, directories that fail ---


def test_an_unregistered_broker_leads_nothing_and_is_forgotten() -> None:
    cluster = ControlledCluster(1, 2)
    cluster.create("orders", [1, 2])
    assert cluster.ask(UnregisterBrokerRequest(broker_id=1)).error_code == 0
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (2, (2,))
    assert 1 not in cluster.image.brokers
    assert cluster.heartbeat(1).error_code == ErrorCode.STALE_BROKER_EPOCH
    answer = cluster.ask(UnregisterBrokerRequest(broker_id=1))
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    cluster.start(1, incarnation=2)


def test_a_failed_directory_takes_its_replicas_out() -> None:
    cluster = ControlledCluster(1)
    cluster.start(2, log_dirs=[b"a" * 16, b"b" * 16])
    cluster.create("orders", [2, 1])
    assert cluster.partition("orders").directories[0] == bytes([*bytes(15), 1])
    cluster.partition("orders").directories = (b"a" * 16, b"directory 000001")
    cluster.heartbeat(2, offline_log_dirs=[b"b" * 16, b"c" * 16])
    assert cluster.broker(2).log_dirs == (b"a" * 16,)
    assert cluster.partition("orders").leader == 2
    cluster.start(2, incarnation=1, log_dirs=[b"a" * 16, b"b" * 16])
    cluster.heartbeat(2, offline_log_dirs=[b"a" * 16])
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (1, (1,))


def test_cordoned_directories_are_kept() -> None:
    cluster = ControlledCluster(1)
    cluster.heartbeat(1, cordoned_log_dirs=[b"directory 000001"])
    assert cluster.broker(1).cordoned_log_dirs == (b"directory 000001",)
    before = len(cluster.log)
    cluster.heartbeat(1, cordoned_log_dirs=[b"directory 000001"])
    assert len(cluster.log) == before
