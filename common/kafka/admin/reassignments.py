"""Requests for the reassignment of partitions and for the election of leaders."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from common.kafka.admin.client import AdminClient, To, error_of, raise_for
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages import alter_partition_reassignments as alter_messages
from common.kafka.protocol.messages import elect_leaders as elect_messages
from common.kafka.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from common.kafka.topics import TopicPartition


class ElectionType(IntEnum):
    """A preferred election, or an unclean one of a replica outside the ISR."""

    PREFERRED = 0
    UNCLEAN = 1


class Reassignment(NamedTuple):
    """One reassignment; `replicas` are all current replicas, old and new."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]


def list_reassignments(
    client: AdminClient, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, Reassignment]:
    """Return the ongoing reassignments of all or of some partitions."""
    topics = None
    if partitions is not None:
        topics = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in _by_topic(partitions).items()
        ]
        if not topics:
            return {}
    request = ListPartitionReassignmentsRequest(
        topics=topics, timeout_ms=client.settings.request_timeout_ms
    )
    response = client.ask(request, ListPartitionReassignmentsResponse, To.CONTROLLER)
    raise_for(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, partition.partition_index): Reassignment(
            partition.replicas, partition.adding_replicas, partition.removing_replicas
        )
        for topic in response.topics
        for partition in topic.partitions
    }


def alter_reassignments(
    client: AdminClient,
    targets: Mapping[TopicPartition, list[int] | None],
    *,
    may_change_replication_factor: bool = True,
) -> dict[TopicPartition, KafkaError]:
    """Start reassignments, or cancel those whose target is None; return the refused ones."""
    topics = []
    for name, indexes in _by_topic(targets).items():
        partitions = [
            alter_messages.ReassignablePartition(
                partition_index=index, replicas=targets[TopicPartition(name, index)]
            )
            for index in indexes
        ]
        topics.append(alter_messages.ReassignableTopic(name=name, partitions=partitions))
    request = alter_messages.AlterPartitionReassignmentsRequest(
        topics=topics,
        timeout_ms=client.settings.request_timeout_ms,
        allow_replication_factor_change=may_change_replication_factor,
    )
    response = client.ask(
        request, alter_messages.AlterPartitionReassignmentsResponse, To.CONTROLLER
    )
    raise_for(response.error_code, response.error_message)
    return {
        TopicPartition(topic.name, partition.partition_index): error_of(
            partition.error_code, partition.error_message
        )
        for topic in response.responses
        for partition in topic.partitions
        if partition.error_code
    }


def elect_leaders(
    client: AdminClient, election: ElectionType, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, KafkaError | None]:
    """Elect leaders, of all partitions for None; return the outcome of each attempt.

    ELECTION_NOT_NEEDED is such an outcome.
    """
    topics = None
    if partitions is not None:
        topics = [
            elect_messages.TopicPartitions(topic=name, partitions=indexes)
            for name, indexes in _by_topic(partitions).items()
        ]
    request = elect_messages.ElectLeadersRequest(
        election_type=election,
        topic_partitions=topics,
        timeout_ms=client.settings.request_timeout_ms,
    )
    response = client.ask(request, elect_messages.ElectLeadersResponse, To.CONTROLLER)
    raise_for(response.error_code)
    return {
        TopicPartition(topic.topic, result.partition_id): (
            error_of(result.error_code, result.error_message)
            if result.error_code != ErrorCode.NONE
            else None
        )
        for topic in response.replica_election_results
        for result in topic.partition_result
    }


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for name, index in sorted(partitions):
        topics.setdefault(name, []).append(index)
    return topics
