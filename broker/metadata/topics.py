"""The topics of `ClusterState`, with the handlers that change them. One node, one replica.

Rules and error codes are those of Kafka's ReplicationControlManager.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broker.errors import ErrorCode, KafkaError
from broker.metadata.control.limits import (
    MAX_RECORDS_PER_REQUEST,
    duplicates,
    validate_partition_count,
)
from broker.metadata.control.partitions import validate_added_count
from broker.metadata.control.topics import topic_settings
from broker.metadata.parts.brokers import MIGRATING_DIRECTORY
from broker.metadata.parts.configs import TOPIC_RESOURCE
from broker.metadata.parts.topics import TopicsImage
from broker.metadata.topic_names import validate_topic_name
from broker.protocol.message import Message
from broker.protocol.messages.create_partitions import CreatePartitionsTopic
from broker.protocol.messages.create_topics import CreatableTopic
from broker.protocol.records.metadata import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

__all__ = [
    "MAX_RECORDS_PER_REQUEST",
    "TOPIC_RESOURCE",
    "CreatedTopic",
    "TopicControl",
    "TopicDefaults",
    "duplicates",
]


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """What a request that says -1 gets, and what the cluster allows."""

    partition_count: int
    replication_factor: int
    broker_ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic as the answer to its creation describes it, and the records that create it."""

    topic_id: bytes
    partition_count: int
    replication_factor: int
    records: list[Message]


class TopicControl(TopicsImage):
    """Every topic of the cluster."""

    # --- handlers: look, decide, return records ---

    def create(
        self, topic: CreatableTopic, *, topic_id: bytes, defaults: TopicDefaults
    ) -> CreatedTopic:
        """Return the records that create `topic`; raises KafkaError with Kafka's code."""
        self._validate_new_name(topic.name)
        replicas = _manual(topic, defaults) or _automatic(topic, defaults, first=len(self.by_name))
        settings = topic_settings(topic)
        records: list[Message] = [TopicRecord(name=topic.name, topic_id=topic_id)]
        records += [
            ConfigRecord(
                resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value
            )
            for name, value in sorted(settings.items())
        ]
        records += [
            _partition_record(topic_id, partition, assigned)
            for partition, assigned in enumerate(replicas)
        ]
        return CreatedTopic(topic_id, len(replicas), len(replicas[0]), records)

    def delete(self, topic_id: bytes) -> list[Message]:
        """Return the records that remove a topic; raises UNKNOWN_TOPIC_ID."""
        if topic_id not in self.by_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return [RemoveTopicRecord(topic_id=topic_id)]

    def add_partitions(
        self, topic: CreatePartitionsTopic, defaults: TopicDefaults
    ) -> list[Message]:
        """Return the records that raise a topic's partition count to `topic.count`."""
        image = self.named(topic.name)
        current = len(image.partitions)
        added = validate_added_count(topic, image)
        if topic.assignments is None:
            replicas = _round_robin(
                partition_count=added,
                replication_factor=image.replication_factor,
                broker_ids=defaults.broker_ids,
                first=current,
            )
        else:
            replicas = [list(assignment.broker_ids) for assignment in topic.assignments]
            _validate_replicas(replicas, defaults.broker_ids)
        return [
            _partition_record(image.topic_id, current + index, assigned)
            for index, assigned in enumerate(replicas)
        ]

    def _validate_new_name(self, name: str) -> None:
        validate_topic_name(name)
        if name in self.by_name:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        other = self.colliding_name(name)
        if other is not None:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )


def _manual(topic: CreatableTopic, defaults: TopicDefaults) -> list[list[int]] | None:
    if not topic.assignments:
        return None
    if topic.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not -1.",
        )
    if topic.num_partitions != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not -1.",
        )
    given: Mapping[int, list[int]] = {
        assignment.partition_index: list(assignment.broker_ids) for assignment in topic.assignments
    }
    if len(given) != len(topic.assignments) or sorted(given) != list(range(len(given))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    validate_partition_count(len(given))
    replicas = [given[partition] for partition in range(len(given))]
    _validate_replicas(replicas, defaults.broker_ids)
    return replicas


def _automatic(topic: CreatableTopic, defaults: TopicDefaults, *, first: int) -> list[list[int]]:
    count, factor = topic.num_partitions, topic.replication_factor
    if count < -1 or count == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if factor < -1 or factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor was set to an invalid non-positive value.",
        )
    partition_count = defaults.partition_count if count == -1 else count
    validate_partition_count(partition_count)
    return _round_robin(
        partition_count=partition_count,
        replication_factor=defaults.replication_factor if factor == -1 else factor,
        broker_ids=defaults.broker_ids,
        first=first,
    )


def _round_robin(
    *, partition_count: int, replication_factor: int, broker_ids: Sequence[int], first: int
) -> list[list[int]]:
    count = len(broker_ids)
    if replication_factor > count:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): the target "
            f"replication factor of {replication_factor} cannot be reached because only {count} "
            "broker(s) are registered.",
        )
    ordered = sorted(broker_ids)
    return [
        [ordered[(first + partition + replica) % count] for replica in range(replication_factor)]
        for partition in range(partition_count)
    ]


def _validate_replicas(replicas: list[list[int]], broker_ids: Sequence[int]) -> None:
    for assigned in replicas:
        if not assigned or len(assigned) != len(set(assigned)):
            problem = "the replica list must be non-empty and without duplicates"
        elif len(assigned) != len(replicas[0]):
            problem = "all partitions must have the same number of replicas"
        elif not set(assigned) <= set(broker_ids):
            problem = "the manual assignment names a broker that is not registered"
        else:
            continue
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{problem}: {assigned}")


def _partition_record(topic_id: bytes, partition: int, replicas: list[int]) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[MIGRATING_DIRECTORY] * len(replicas),
    )
