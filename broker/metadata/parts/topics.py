"""All topics of the cluster, and the state of their partitions.

Invariants, which the records keep: `by_name` and `by_id` have the same topics; no two names have
the same `collision_key`; the leader of a partition is NO_LEADER or in `isr`, `isr` is a subset of
`replicas`, `elr` and `isr` are disjoint, and both epochs only grow.

A cluster has few different lists of replicas and of directories, and very many partitions, so equal
tuples are shared.
"""

from dataclasses import dataclass, field
from typing import TypeVar

from broker.metadata.topic_names import collision_key
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.records.metadata import (
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)

NO_LEADER = -1
NO_LEADER_CHANGE = -2  # in a PartitionChangeRecord
RECOVERED, RECOVERING = range(2)  # leader recovery state (KIP-704)
NO_RECOVERY_CHANGE = -1

MAX_SHARED_TUPLES = 10_000

T = TypeVar("T")


@dataclass(slots=True)
class PartitionImage:
    """One partition: its replicas, leader and reassignment (KIP-455, KIP-704, KIP-966).

    A partition in the image is never changed but replaced. So a snapshot keeps a consistent state
    of very many partitions while it is written in parts and the image changes.
    """

    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader_recovery_state: int = RECOVERED
    directories: tuple[bytes, ...] = ()  # of each replica, in the order of `replicas`

    def copy(self) -> "PartitionImage":
        """Return a copy that may be changed."""
        return PartitionImage(*map(self.__getattribute__, self.__slots__))

    @property
    def has_preferred_leader(self) -> bool:
        """True if the first replica is the leader."""
        return self.leader == self.replicas[0]

    @property
    def is_reassigning(self) -> bool:
        """True during a reassignment."""
        return bool(self.adding_replicas or self.removing_replicas)


@dataclass(slots=True)
class TopicImage:
    """One topic. Invariant: after the replay of its records, `partitions` has the keys 0..n-1."""

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionImage] = field(default_factory=dict)

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the first partition."""
        return len(self.partitions[0].replicas)


class TopicsImage:
    """All topics of the cluster."""

    def __init__(self) -> None:
        self.by_name: dict[str, TopicImage] = {}
        self.by_id: dict[bytes, TopicImage] = {}
        self._collisions: dict[str, str] = {}  # collision key -> the name that has it
        self._shared: dict[tuple[object, ...], tuple[object, ...]] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicsImage) and self.by_id == other.by_id

    __hash__ = None  # type: ignore[assignment]  # it changes

    def named(self, name: str) -> TopicImage:
        """Return the topic of that name; raise UNKNOWN_TOPIC_OR_PARTITION."""
        image = self.by_name.get(name)
        if image is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )
        return image

    def colliding_name(self, name: str) -> str | None:
        """Return the topic whose name collides with `name`, None if there is none."""
        return self._collisions.get(collision_key(name))

    def out_of_sync_count(self, broker_id: int) -> int:
        """Return how many replicas of a broker are not in sync; looks at every partition."""
        return sum(
            broker_id in partition.replicas and broker_id not in partition.isr
            for topic in self.by_id.values()
            for partition in topic.partitions.values()
        )

    # --- replay ---

    def replay_topic(self, record: TopicRecord) -> None:
        """Add a topic without partitions."""
        image = TopicImage(record.name, record.topic_id)
        self.by_name[record.name] = image
        self.by_id[record.topic_id] = image
        self._collisions[collision_key(record.name)] = record.name

    def partition_from_record(self, record: PartitionRecord) -> PartitionImage:
        """Return the partition of a record; `put_partition` adds it."""
        share = self._share
        return PartitionImage(
            partition=record.partition_id,
            replicas=share(record.replicas),
            isr=share(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            adding_replicas=share(record.adding_replicas),
            removing_replicas=share(record.removing_replicas),
            elr=share(record.eligible_leader_replicas),
            last_known_elr=share(record.last_known_elr),
            leader_recovery_state=record.leader_recovery_state,
            directories=share(record.directories),
        )

    def put_partition(self, topic_id: bytes, partition: PartitionImage) -> None:
        """Add a partition, or replace the existing one."""
        self.by_id[topic_id].partitions[partition.partition] = partition

    def replay_partition_change(
        self, record: PartitionChangeRecord
    ) -> tuple[PartitionImage, PartitionImage]:
        """Apply the changes of a record, with a new partition epoch.

        Return the partition before and after the change.
        """
        partitions = self.by_id[record.topic_id].partitions
        before = partitions[record.partition_id]
        partition = before.copy()
        change_partition(partition, record)
        partition.replicas = self._share(partition.replicas)
        partition.isr = self._share(partition.isr)
        partition.directories = self._share(partition.directories)
        partitions[record.partition_id] = partition
        return before, partition

    def replay_remove(self, topic_id: bytes) -> TopicImage:
        """Remove and return a topic."""
        image = self.by_id.pop(topic_id)
        del self.by_name[image.name]
        del self._collisions[collision_key(image.name)]
        return image

    def replay_clear_elr(self, name: str) -> list[TopicImage]:
        """Clear the eligible leaders of one topic, of all topics for ""; return these topics."""
        images = [self.by_name[name]] if name else list(self.by_name.values())
        for image in images:
            for number, before in image.partitions.items():
                image.partitions[number] = partition = before.copy()
                partition.elr = partition.last_known_elr = ()
        return images

    def _share(self, values: list[T] | tuple[T, ...] | None) -> tuple[T, ...]:
        if not values:
            return ()
        if len(self._shared) > MAX_SHARED_TUPLES:
            self._shared.clear()
        key = tuple(values)
        return self._shared.setdefault(key, key)  # type: ignore[return-value]


def change_partition(partition: PartitionImage, record: PartitionChangeRecord) -> None:
    """Apply a change; a record that names a leader, even the same one, starts a leader epoch."""
    if record.isr is not None:
        partition.isr = tuple(record.isr)
    if record.replicas is not None:
        partition.replicas = tuple(record.replicas)
    if record.removing_replicas is not None:
        partition.removing_replicas = tuple(record.removing_replicas)
    if record.adding_replicas is not None:
        partition.adding_replicas = tuple(record.adding_replicas)
    if record.eligible_leader_replicas is not None:
        partition.elr = tuple(record.eligible_leader_replicas)
    if record.last_known_elr is not None:
        partition.last_known_elr = tuple(record.last_known_elr)
    if record.directories is not None:
        partition.directories = tuple(record.directories)
    if record.leader_recovery_state != NO_RECOVERY_CHANGE:
        partition.leader_recovery_state = record.leader_recovery_state
    if record.leader != NO_LEADER_CHANGE:
        partition.leader = record.leader
        partition.leader_epoch += 1
    partition.partition_epoch += 1
