"""Requests for very many topics are decided in steps, and end as if they were decided whole."""

from typing import Any

import pytest

from broker.metadata.control.assignments import PARTITIONS_PER_STEP
from broker.metadata.control.steps import ITEMS_PER_STEP, RECORDS_PER_STEP
from broker.metadata.parts.configs import GROUP_RESOURCE
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from common.kafka.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest
from common.kafka.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from common.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from common.kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from common.kafka.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from common.kafka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig as IncrementalConfig,
)
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from common.kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from common.kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsTopics as ListedTopic,
)
from tests.lib.controlled_cluster import ControlledCluster

MANY = 3 * ITEMS_PER_STEP


def create(cluster: ControlledCluster, names: list[str], partitions: int = 2, **more: Any) -> Any:
    topics = [
        CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names
    ]
    return cluster.ask(CreateTopicsRequest(topics=topics, **more))


def names(count: int) -> list[str]:
    return [f"topic-{number}" for number in range(count)]


def test_many_topics_are_created_in_steps_that_hold_whole_topics() -> None:
    cluster = ControlledCluster(1)
    answer = create(cluster, names(MANY))
    assert [topic.error_code for topic in answer.topics] == [0] * MANY
    assert sorted(cluster.image.topics.by_name) == sorted(names(MANY))
    given = [step for step in cluster.steps if step]
    assert len(given) > 3
    for step in [*given, cluster.last_records]:
        assert 0 < len(step) <= RECORDS_PER_STEP
        assert len(step) % 3 == 0, "a topic's record and those of its two partitions"


def test_no_step_chooses_more_than_some() -> None:
    cluster = ControlledCluster(1)
    create(cluster, names(MANY))
    empty = [step for step in cluster.steps if not step]
    assert len(empty) == MANY // ITEMS_PER_STEP


def test_a_topic_of_very_many_partitions_is_one_step_that_comes_after_the_decision() -> None:
    cluster = ControlledCluster(1)
    answer = create(cluster, ["orders"], partitions=MANY)
    assert [topic.num_partitions for topic in answer.topics] == [MANY]
    assert [len(step) for step in cluster.steps] == [0]
    assert len(cluster.last_records) == 1 + MANY


VERY_MANY = 3 * PARTITIONS_PER_STEP
"""Partitions are so many that not even they are chosen in one step."""


@pytest.mark.parametrize("is_manual", [True, False])
def test_the_partitions_of_a_topic_are_chosen_in_steps_and_committed_in_one(
    *, is_manual: bool
) -> None:
    cluster = ControlledCluster(1)
    created = CreatableTopic(name="orders", num_partitions=VERY_MANY, replication_factor=1)
    more = CreatePartitionsTopic(name="orders", count=2 * VERY_MANY, assignments=None)
    if is_manual:
        created.num_partitions = created.replication_factor = -1
        created.assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=[1])
            for index in range(VERY_MANY)
        ]
        more.assignments = [CreatePartitionsAssignment(broker_ids=[1])] * VERY_MANY
    for request in (CreateTopicsRequest(topics=[created]), CreatePartitionsRequest(topics=[more])):
        cluster.ask(request)
        assert len(cluster.steps) >= 3
        assert not any(cluster.steps)
        assert len(cluster.last_records) >= VERY_MANY
    assert len(cluster.image.topics.by_name["orders"].partitions) == 2 * VERY_MANY


def test_few_topics_are_created_whole() -> None:
    cluster = ControlledCluster(1)
    create(cluster, names(5))
    assert not cluster.steps
    assert len(cluster.last_records) == 15


def test_nothing_is_created_when_all_of_it_is_too_much() -> None:
    cluster = ControlledCluster(1)
    answer = create(cluster, names(4_000))
    assert {topic.error_code for topic in answer.topics} == {ErrorCode.POLICY_VIOLATION}
    assert not any(cluster.steps)
    assert not cluster.image.topics.by_name


def test_names_that_collide_are_found_across_the_steps() -> None:
    cluster = ControlledCluster(1)
    clash = ["a.b", *names(MANY), "a_b"]
    for is_dry in (True, False):
        answer = create(cluster, clash, validate_only=is_dry)
        codes = {topic.name: topic.error_code for topic in answer.topics if topic.error_code}
        assert codes == {"a_b": ErrorCode.INVALID_TOPIC_EXCEPTION}
        assert ("a.b" in cluster.image.topics.by_name) is not is_dry


@pytest.mark.parametrize("count", [5, MANY])
def test_topics_are_deleted_in_steps(count: int) -> None:
    cluster = ControlledCluster(1)
    create(cluster, names(MANY))
    wanted = [DeleteTopicState(name=name) for name in names(count)]
    answer = cluster.ask(DeleteTopicsRequest(topics=wanted), 6)
    assert [topic.error_code for topic in answer.responses] == [0] * count
    assert sorted(cluster.image.topics.by_name) == sorted(names(MANY)[count:])
    assert bool(cluster.steps) is (count > RECORDS_PER_STEP)


def test_partitions_are_added_in_steps() -> None:
    cluster = ControlledCluster(1)
    create(cluster, names(MANY))
    wanted = [CreatePartitionsTopic(name=name, count=3, assignments=None) for name in names(MANY)]
    answer = cluster.ask(CreatePartitionsRequest(topics=wanted))
    assert [topic.error_code for topic in answer.results] == [0] * MANY
    assert {len(topic.partitions) for topic in cluster.image.topics.by_name.values()} == {3}
    assert any(cluster.steps)


def many_settings(kind: type[Any], entry: type[Any], config: Any) -> Any:
    """Set something of very many groups, which need not exist, and of one twice."""
    groups = [f"group-{number}" for number in range(MANY)]
    return kind(
        resources=[
            entry(resource_type=GROUP_RESOURCE, resource_name=name, configs=[config])
            for name in [*groups, "twice", "twice"]
        ]
    )


TIMEOUT = {"name": "consumer.session.timeout.ms", "value": "50000"}
SETTINGS = [
    many_settings(AlterConfigsRequest, ReplacedResource, AlterableConfig(**TIMEOUT)),
    many_settings(
        IncrementalAlterConfigsRequest, AlterConfigsResource, IncrementalConfig(**TIMEOUT)
    ),
]


@pytest.mark.parametrize("request_", SETTINGS, ids=["whole", "incremental"])
def test_the_settings_of_many_are_decided_in_steps_and_committed_in_one(request_: Any) -> None:
    cluster = ControlledCluster(1)
    answer = cluster.ask(request_)
    wanted = [*[ErrorCode.NONE] * MANY, *[ErrorCode.INVALID_REQUEST] * 2]
    assert [resource.error_code for resource in answer.responses] == wanted
    assert len(cluster.steps) == (MANY + 2) // ITEMS_PER_STEP
    assert not any(cluster.steps)
    assert len(cluster.last_records) == MANY


def test_quotas_of_many_are_decided_in_steps_and_committed_in_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = ControlledCluster(1)
    entries = [
        EntryData(
            entity=[EntityData(entity_type="user", entity_name=f"user-{number}")],
            ops=[OpData(key="producer_byte_rate", value=1_000.0)],
        )
        for number in range(MANY)
    ]
    answer = cluster.ask(AlterClientQuotasRequest(entries=entries))
    assert [entry.error_code for entry in answer.entries] == [0] * MANY
    assert len(cluster.steps) == MANY // ITEMS_PER_STEP
    assert len(cluster.last_records) == MANY


@pytest.mark.parametrize(("topics", "partitions"), [(1, MANY), (MANY, 1)])
def test_elections_and_moves_of_many_partitions_are_decided_in_steps(
    topics: int, partitions: int
) -> None:
    cluster = ControlledCluster(1)
    create(cluster, names(topics), partitions=partitions)
    indexes = list(range(partitions))
    elected = [TopicPartitions(topic=name, partitions=indexes) for name in names(topics)]
    moves = [
        ReassignableTopic(
            name=name,
            partitions=[
                ReassignablePartition(partition_index=index, replicas=[1]) for index in indexes
            ],
        )
        for name in names(topics)
    ]
    listed = [
        ListedTopic(name=name, partition_indexes=indexes) for name in [*names(topics), "none"]
    ]
    answer = cluster.ask(ElectLeadersRequest(topic_partitions=elected))
    assert len(cluster.steps) == MANY // ITEMS_PER_STEP
    codes = [
        one.error_code for each in answer.replica_election_results for one in each.partition_result
    ]
    assert codes == [ErrorCode.ELECTION_NOT_NEEDED] * MANY
    answer = cluster.ask(AlterPartitionReassignmentsRequest(topics=moves))
    assert len(cluster.steps) == MANY // ITEMS_PER_STEP
    assert [one.error_code for each in answer.responses for one in each.partitions] == [0] * MANY
    answer = cluster.ask(ListPartitionReassignmentsRequest(topics=listed))
    assert answer.topics == []


def test_topics_that_are_not_there_are_looked_for_in_steps() -> None:
    cluster = ControlledCluster(1)
    wanted = [DeleteTopicState(name=name) for name in names(MANY)]
    answer = cluster.ask(DeleteTopicsRequest(topics=wanted), 6)
    codes = [topic.error_code for topic in answer.responses]
    assert codes == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * MANY
    assert len(cluster.steps) == MANY // ITEMS_PER_STEP
