"""Requests that ask for too much, and requests that are refused as a whole."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.metadata.controller import CONTROLLER_APIS, refuse
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import request_class
from common.kafka.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from common.kafka.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from common.kafka.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from common.kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from common.kafka.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from common.kafka.protocol.structs import decode_struct, encode_struct
from tests.lib.controlled_cluster import ControlledCluster
from tests.lib.protocol_messages import structs

MANY = 20_000  # twice what one request may write


def codes(cluster: ControlledCluster, request: Any, field: str, version: int) -> set[int]:
    """Return the errors beside the items; nothing was written."""
    before = len(cluster.log)
    answer = cluster.ask(request, version)
    assert len(cluster.log) == before
    return {item.error_code for item in getattr(answer, field)}


@pytest.mark.parametrize("partitions", [1, 2**31 - 1])
def test_too_many_topics_are_refused_together(partitions: int) -> None:
    topics = [
        CreatableTopic(name=f"t{number}", num_partitions=partitions, replication_factor=1)
        for number in range(MANY)
    ]
    request = CreateTopicsRequest(topics=topics)
    assert codes(ControlledCluster(1), request, "topics", 7) == {ErrorCode.POLICY_VIOLATION}


def test_too_many_topics_that_cannot_be_are_refused_each() -> None:
    topics = [
        CreatableTopic(name=f"no/{number}", num_partitions=0, replication_factor=1)
        for number in range(MANY)
    ]
    request = CreateTopicsRequest(topics=topics)
    invalid = {ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert codes(ControlledCluster(1), request, "topics", 7) == invalid


def test_one_topic_with_too_many_assignments_is_refused() -> None:
    assignments = [
        CreatableReplicaAssignment(partition_index=number, broker_ids=[1]) for number in range(MANY)
    ]
    topic = CreatableTopic(
        name="t", num_partitions=-1, replication_factor=-1, assignments=assignments
    )
    request = CreateTopicsRequest(topics=[topic])
    assert codes(ControlledCluster(1), request, "topics", 7) == {ErrorCode.POLICY_VIOLATION}


def test_one_partition_with_too_many_replicas_is_refused() -> None:
    answer = ControlledCluster(1).create("t", [1] * MANY)
    assert answer.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_topics_that_grow_too_much_together_are_refused() -> None:
    cluster = ControlledCluster(1)
    for number in range(5):
        cluster.create(f"t{number}", [1])
    grown = [
        CreatePartitionsTopic(name=f"t{number}", count=10_001, assignments=None)
        for number in range(5)
    ]
    request = CreatePartitionsRequest(topics=grown)
    assert codes(cluster, request, "results", 3) == {ErrorCode.POLICY_VIOLATION}


def test_too_many_unknown_names_are_each_unknown() -> None:
    cluster = ControlledCluster(1)
    names = [f"t{number}" for number in range(MANY)]
    request = DeleteTopicsRequest(topic_names=names)
    unknown = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert codes(cluster, request, "responses", 5) == unknown
    topics = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in names]
    assert codes(cluster, CreatePartitionsRequest(topics=topics), "results", 3) == unknown
    wanted = TopicPartitions(topic="t", partitions=list(range(MANY)))
    answer = cluster.ask(ElectLeadersRequest(topic_partitions=[wanted]))
    assert {of.error_code for of in answer.replica_election_results[0].partition_result} == unknown
    moved = [ReassignablePartition(partition_index=number) for number in range(MANY)]
    topic = ReassignableTopic(name="t", partitions=moved)
    answer = cluster.ask(AlterPartitionReassignmentsRequest(topics=[topic]), 1)
    assert {of.error_code for of in answer.responses[0].partitions} == unknown


def test_one_name_given_very_often_is_one_refusal() -> None:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    answer = ControlledCluster(1).ask(CreateTopicsRequest(topics=[topic] * MANY))
    assert [result.error_code for result in answer.topics] == [ErrorCode.INVALID_REQUEST]


def test_too_many_settings_are_refused() -> None:
    configs = [
        AlterableConfig(name=f"s{number}", config_operation=0, value="1") for number in range(MANY)
    ]
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    assert codes(ControlledCluster(1), request, "responses", 1) == {ErrorCode.POLICY_VIOLATION}


def test_too_many_quotas_are_refused() -> None:
    entries = [
        EntryData(
            entity=[EntityData(entity_type="user", entity_name=f"u{number}")],
            ops=[OpData(key="producer_byte_rate", value=1.0)],
        )
        for number in range(MANY)
    ]
    request = AlterClientQuotasRequest(entries=entries)
    assert codes(ControlledCluster(1), request, "entries", 1) == {ErrorCode.POLICY_VIOLATION}


# --- any request at all ---


@pytest.mark.parametrize("key", sorted(CONTROLLER_APIS), ids=lambda key: key.name)
@settings(max_examples=20)
@given(data=st.data())
def test_any_request_gets_an_answer_of_its_version(key: ApiKey, data: st.DataObject) -> None:
    versions = API_VERSION_RANGES[key]
    version = data.draw(st.integers(versions.served_min, versions.max))
    request = data.draw(structs(request_class(key), version))
    cluster = ControlledCluster(1, 2)
    cluster.create("orders", [1, 2])
    answer = cluster.ask(request, version)
    assert decode_struct(type(answer), version, encode_struct(answer, version)) is not None
    refusal = refuse(request, version, KafkaError(ErrorCode.NOT_CONTROLLER, "not here"))
    assert type(refusal) is type(answer)
    assert decode_struct(type(refusal), version, encode_struct(refusal, version)) is not None
    assert cluster.replayed() == cluster.image


@pytest.mark.parametrize("key", sorted(CONTROLLER_APIS), ids=lambda key: key.name)
def test_a_refusal_has_its_error_wherever_there_is_room(key: ApiKey) -> None:
    request = request_class(key)()
    version = API_VERSION_RANGES[key].max
    refusal = refuse(request, version, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    if "error_code" in refusal.__fields__:
        assert refusal.error_code == ErrorCode.REQUEST_TIMED_OUT  # type: ignore[attr-defined]


@pytest.mark.parametrize(("version", "count"), [(0, MANY), (1, MANY), (2, 2)])
def test_elections_of_very_many_are_refused_at_the_top_where_there_is_room(
    version: int, count: int
) -> None:
    topics = [TopicPartitions(topic="orders", partitions=[*range(count)])]
    request = ElectLeadersRequest(topic_partitions=topics)
    refusal: Any = refuse(request, version, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    told = [one for topic in refusal.replica_election_results for one in topic.partition_result]
    assert len(told) == (0 if (version, count) == (1, MANY) else count)
    assert refusal.error_code == (ErrorCode.REQUEST_TIMED_OUT if version else ErrorCode.NONE)
