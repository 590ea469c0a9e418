"""What is known of the topics: plain values that `TopicControl.replay` alone changes."""

from dataclasses import dataclass, field

NO_LEADER = -1


@dataclass(slots=True)
class PartitionImage:
    """One partition: who holds it, who leads it. Invariant: leader is NO_LEADER or in `isr`."""

    partition: int
    replicas: list[int]
    isr: list[int]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0


@dataclass(slots=True)
class TopicImage:
    """One topic. Invariant: `partitions` is keyed 0..n-1 once its records are replayed."""

    name: str
    topic_id: bytes
    partitions: dict[int, PartitionImage] = field(default_factory=dict)

    @property
    def replication_factor(self) -> int:
        """How many replicas its first partition has."""
        return len(self.partitions[0].replicas)
