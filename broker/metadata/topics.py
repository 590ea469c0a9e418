"""Topics: create, delete, add partitions. Handlers return records; `replay` applies them.

Rules and error codes are those of Kafka's ReplicationControlManager. Invariants, kept by `replay`:
`by_name` and `by_id` hold the same topics; no two names share a `collision_key`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from broker.errors import ErrorCode, KafkaError
from broker.log.config import LogConfig
from broker.metadata.image import PartitionImage, TopicImage
from broker.metadata.placement import compute_placement
from broker.metadata.topic_names import collision_key, validate_topic_name
from broker.protocol.message import Message
from broker.protocol.messages.create_partitions import CreatePartitionsTopic
from broker.protocol.messages.create_topics import CreatableTopic
from broker.protocol.records.metadata import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

MAX_RECORDS_PER_REQUEST = 10_000  # Kafka's QuorumController.MAX_RECORDS_PER_USER_OP
TOPIC_RESOURCE = 2
UNASSIGNED_DIRECTORY = bytes(16)


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


class TopicControl:
    """Owns every topic of the cluster."""

    def __init__(self) -> None:
        self.by_name: dict[str, TopicImage] = {}
        self.by_id: dict[bytes, TopicImage] = {}
        self._collisions: dict[str, str] = {}  # collision key -> the name that has it

    # --- handlers: look, decide, return records ---

    def create(
        self, topic: CreatableTopic, *, topic_id: bytes, defaults: TopicDefaults
    ) -> CreatedTopic:
        """Return the records that create `topic`; raises KafkaError with Kafka's code."""
        self._validate_new_name(topic.name)
        replicas = _manual(topic, defaults) or _automatic(topic, defaults, first=len(self.by_name))
        settings = _settings(topic)
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
        if topic.count == current:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partition(s)."
            )
        if topic.count < current:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                f"The topic {topic.name} currently has {current} partition(s); {topic.count} would "
                "not be an increase.",
            )
        added = topic.count - current
        _validate_partition_count(added)
        if topic.assignments is None:
            replicas = compute_placement(
                partition_count=added,
                replication_factor=image.replication_factor,
                broker_ids=defaults.broker_ids,
                first=current,
            )
        else:
            replicas = [list(assignment.broker_ids) for assignment in topic.assignments]
            if len(replicas) != added:
                raise KafkaError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"Attempted to add {added} additional partition(s), but only {len(replicas)} "
                    "assignment(s) were specified.",
                )
            _validate_replicas(replicas, defaults.broker_ids)
        return [
            _partition_record(image.topic_id, current + index, assigned)
            for index, assigned in enumerate(replicas)
        ]

    def named(self, name: str) -> TopicImage:
        """Return the topic of that name; raises UNKNOWN_TOPIC_OR_PARTITION."""
        image = self.by_name.get(name)
        if image is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )
        return image

    def _validate_new_name(self, name: str) -> None:
        validate_topic_name(name)
        if name in self.by_name:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        other = self._collisions.get(collision_key(name))
        if other is not None:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )

    # --- replay: the only place that changes state ---

    def replay_topic(self, record: TopicRecord) -> None:
        """Add a topic that has no partitions yet."""
        image = TopicImage(record.name, record.topic_id)
        self.by_name[record.name] = image
        self.by_id[record.topic_id] = image
        self._collisions[collision_key(record.name)] = record.name

    def replay_partition(self, record: PartitionRecord) -> None:
        """Add or replace one partition."""
        self.by_id[record.topic_id].partitions[record.partition_id] = PartitionImage(
            partition=record.partition_id,
            replicas=list(record.replicas),
            isr=list(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
        )

    def replay_remove(self, record: RemoveTopicRecord) -> str:
        """Remove a topic and return its name."""
        image = self.by_id.pop(record.topic_id)
        del self.by_name[image.name]
        del self._collisions[collision_key(image.name)]
        return image.name


def _settings(topic: CreatableTopic) -> dict[str, str]:
    """Return the topic's own settings; raises INVALID_CONFIG."""
    settings: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"Null value not supported for topic configs: {config.name}",
            )
        settings[config.name] = config.value
    LogConfig.from_settings(settings)
    return settings


def duplicates(names: Iterable[str]) -> set[str]:
    """Return the names that occur more than once."""
    seen: set[str] = set()
    repeated: set[str] = set()
    for name in names:
        (repeated if name in seen else seen).add(name)
    return repeated


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
    _validate_partition_count(len(given))
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
    _validate_partition_count(partition_count)
    return compute_placement(
        partition_count=partition_count,
        replication_factor=defaults.replication_factor if factor == -1 else factor,
        broker_ids=defaults.broker_ids,
        first=first,
    )


def _validate_partition_count(count: int) -> None:
    if count > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"Excessively large number of partitions per request: {count} is more than "
            f"{MAX_RECORDS_PER_REQUEST}.",
        )


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
        directories=[UNASSIGNED_DIRECTORY] * len(replicas),
    )
