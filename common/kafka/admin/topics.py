"""Requests about topics: list, describe, create, add partitions, delete."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from common.kafka.acls import AclOperation
from common.kafka.admin.client import AdminClient, To, raise_for
from common.kafka.admin.topic_requests import Assignment, creatable_topic, topic_deletion
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages import create_topics, describe_topic_partitions
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from common.kafka.protocol.messages.delete_topics import DeleteTopicsResponse
from common.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from common.kafka.topics import TopicPartition

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
DEFAULT_PARTITION_LIMIT = 2000
NO_LEADER = -1


class PartitionDescription(NamedTuple):
    """One partition; None for the fields that an old cluster does not answer."""

    partition: int
    leader_id: int
    replicas: list[int]
    isr: list[int]
    elr: list[int] | None
    last_known_elr: list[int] | None


class TopicDescription(NamedTuple):
    """One topic, with its partitions in order."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: list[PartitionDescription]


def list_topics(client: AdminClient) -> list[TopicDescription]:
    """Return all topics, in order of name."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    response = client.ask(request, MetadataResponse)
    raise_for(response.error_code)
    topics = [_from_metadata(topic) for topic in response.topics if not topic.error_code]
    return sorted(topics, key=lambda topic: topic.name)


def topic_leaders(client: AdminClient, names: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the leader of each partition of these topics, NO_LEADER for one without.

    Topics that do not exist are left out. For use within `AdminClient.retry`.
    """
    wanted = sorted(set(names))
    if not wanted:
        return {}
    return {
        TopicPartition(topic.name or "", partition.partition_index): partition.leader_id
        for topic in client.ask_once(_metadata_request(wanted), MetadataResponse).topics
        for partition in topic.partitions
    }


def describe_topics(
    client: AdminClient, names: Iterable[str], partition_limit: int = DEFAULT_PARTITION_LIMIT
) -> list[TopicDescription]:
    """Return these topics, in order of name; raise UNKNOWN_TOPIC_OR_PARTITION for a missing one."""
    wanted = sorted(set(names))
    if not wanted:
        return []
    if client.settings.is_controller_bootstrap or client.supports(ApiKey.DESCRIBE_TOPIC_PARTITIONS):
        return _describe_in_pages(client, wanted, partition_limit)
    return _checked_metadata(client.ask(_metadata_request(wanted), MetadataResponse))


def find_topics(client: AdminClient, names: Iterable[str]) -> list[TopicDescription]:
    """Return those of these topics that exist, in order of name."""
    wanted = sorted(set(names))
    if not wanted:
        return []
    response = client.ask(_metadata_request(wanted), MetadataResponse)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    response.topics = [each for each in response.topics if each.error_code != missing]
    return _checked_metadata(response)


def describe_topic_id(client: AdminClient, topic_id: bytes) -> TopicDescription | None:
    """Return the topic with this id, or None if there is none."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(topic_id=topic_id, name=None)], allow_auto_topic_creation=False
    )
    response = client.ask(request, MetadataResponse)
    if any(topic.error_code == ErrorCode.UNKNOWN_TOPIC_ID for topic in response.topics):
        return None
    found = _checked_metadata(response)
    return found[0] if found else None


def authorized_operations(client: AdminClient, name: str) -> list[AclOperation]:
    """Return what the user may do to a topic."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    response = client.ask(request, MetadataResponse)
    _checked_metadata(response)
    allowed = response.topics[0].topic_authorized_operations
    # The smallest number is the answer of a cluster without this field.
    return [one for one in AclOperation if allowed > 0 and allowed >> one & 1]


def create_topic(
    client: AdminClient,
    name: str,
    *,
    partition_count: int = -1,
    replication_factor: int = -1,
    assignment: Assignment | None = None,
    configs: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> None:
    """Create a topic; -1 is the cluster's default. Raise the error of a refusal.

    `validate_only` creates nothing: the topic is refused or not.
    """
    topic = creatable_topic(
        name,
        partition_count=partition_count,
        replication_factor=replication_factor,
        assignment=assignment,
        configs=configs,
    )
    request = create_topics.CreateTopicsRequest(
        topics=[topic],
        timeout_ms=client.settings.request_timeout_ms,
        validate_only=validate_only,
    )
    response = client.ask(request, create_topics.CreateTopicsResponse, To.CONTROLLER)
    for result in response.topics:
        raise_for(result.error_code, result.error_message)


def create_partitions(
    client: AdminClient,
    counts: Mapping[str, int],
    assignments: Mapping[str, Assignment] = MappingProxyType({}),
) -> None:
    """Add partitions up to a count; `assignments` is for the new partitions only."""
    topics = [
        CreatePartitionsTopic(
            name=name,
            count=count,
            assignments=[
                CreatePartitionsAssignment(broker_ids=replicas) for replicas in assignments[name]
            ]
            if name in assignments
            else None,
        )
        for name, count in sorted(counts.items())
    ]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=client.settings.request_timeout_ms)
    response = client.ask(request, CreatePartitionsResponse, To.CONTROLLER)
    for result in response.results:
        raise_for(result.error_code, result.error_message)


def check_deleted(response: DeleteTopicsResponse) -> None:
    """Raise the first refusal of a deletion."""
    for result in response.responses:
        raise_for(result.error_code, result.error_message)


def delete_topics(client: AdminClient, names: Iterable[str]) -> None:
    """Delete topics by name."""
    request = topic_deletion(names, client.settings.request_timeout_ms)
    if request.topics:
        check_deleted(client.ask(request, DeleteTopicsResponse, To.CONTROLLER))


def _describe_in_pages(
    client: AdminClient, names: list[str], partition_limit: int
) -> list[TopicDescription]:
    """Follow the cursor: an answer has a limited count of partitions, and a topic may span two."""
    found: dict[str, TopicDescription] = {}
    cursor = None
    while True:
        request = describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name=name) for name in names],
            response_partition_limit=partition_limit,
            cursor=cursor,
        )
        response = client.ask(request, describe_topic_partitions.DescribeTopicPartitionsResponse)
        for topic in response.topics:
            if topic.error_code:
                raise _missing(topic.error_code, topic.name)
            name = topic.name or ""
            described = found.setdefault(
                name, TopicDescription(name, topic.topic_id, topic.is_internal, [])
            )
            described.partitions.extend(
                PartitionDescription(
                    partition.partition_index,
                    partition.leader_id,
                    partition.replica_nodes,
                    partition.isr_nodes,
                    partition.eligible_leader_replicas or [],
                    partition.last_known_elr or [],
                )
                for partition in topic.partitions
            )
        cursor = response.next_cursor
        if cursor is None:
            break
        first_left = cursor.topic_name
        names = [name for name in names if name >= first_left]
    for described in found.values():
        described.partitions.sort(key=lambda partition: partition.partition)
    return [found[name] for name in sorted(found)]


def _metadata_request(names: Iterable[str]) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )


def _checked_metadata(response: MetadataResponse) -> list[TopicDescription]:
    raise_for(response.error_code)
    for topic in response.topics:
        if topic.error_code:
            raise _missing(topic.error_code, topic.name)
    return sorted(map(_from_metadata, response.topics), key=lambda topic: topic.name)


def _from_metadata(topic: MetadataResponseTopic) -> TopicDescription:
    partitions = [
        PartitionDescription(
            partition.partition_index,
            partition.leader_id,
            partition.replica_nodes,
            partition.isr_nodes,
            None,
            None,
        )
        for partition in topic.partitions
    ]
    partitions.sort(key=lambda partition: partition.partition)
    return TopicDescription(topic.name or "", topic.topic_id, topic.is_internal, partitions)


def _missing(code: int, name: str | None) -> KafkaError:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {name} not found.")
    return KafkaError(ErrorCode(code), f"Topic {name}: {ErrorCode(code).name}")
