"""One replica of a partition on this broker: leader or follower, as the metadata says.

The package has the table of its transitions. A replica has at most one role at a time. A role
object lives as long as the metadata gives the role: a follower that becomes the leader again starts
with a new `PartitionLeader`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from broker.metadata.image import PartitionImage
from broker.replication.follower import PartitionFollower
from broker.replication.leader import ActiveEpoch, PartitionLeader
from broker.replication.log import ReplicaLog

T = TypeVar("T")

LAG_TIME_MAX_MS = 30_000  # replica.lag.time.max.ms
BACKOFF_MS = 1_000  # replica.fetch.backoff.ms


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """The settings that all replicas of a broker share."""

    lag_time_max_ms: int = LAG_TIME_MAX_MS
    backoff_ms: int = BACKOFF_MS


@dataclass(slots=True)
class ReplicaChange(Generic[T]):
    """The effect of new metadata on a replica, for the shell to carry out."""

    became_leader: bool = False
    """It leads a new epoch; it may have led the previous one too."""
    became_follower: bool = False
    """It follows in a new epoch and fetches from `follower.leader_id`, if there is a leader."""
    has_high_watermark_moved: bool = False
    sent_away: tuple[T, ...] = ()
    """The requests to answer with NOT_LEADER_OR_FOLLOWER, because the leadership ended."""


class Replica(Generic[T]):
    """Invariant: at most one of `leader` and `follower` is set; neither is before any metadata."""

    __slots__ = (
        "_active_epoch",
        "_settings",
        "follower",
        "leader",
        "log",
        "min_insync_replicas",
        "node_id",
        "partition_epoch",
    )

    def __init__(
        self,
        node_id: int,
        log: ReplicaLog,
        active_epoch: Callable[[int], int | None],
        settings: ReplicationSettings,
        *,
        min_insync_replicas: int = 1,
    ) -> None:
        self.node_id = node_id
        self.log = log
        self.min_insync_replicas = min_insync_replicas
        self._active_epoch: ActiveEpoch = active_epoch
        self._settings = settings
        self.partition_epoch = -1
        self.leader: PartitionLeader[T] | None = None
        self.follower: PartitionFollower | None = None

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of the current role; -1 before any metadata."""
        role = self.leader or self.follower
        return -1 if role is None else role.leader_epoch

    def apply(self, partition: PartitionImage, now_ms: int) -> ReplicaChange[T]:
        """Apply a partition record; a record that is not newer changes nothing."""
        change: ReplicaChange[T] = ReplicaChange()
        if partition.partition_epoch <= self.partition_epoch:
            return change
        self.partition_epoch = partition.partition_epoch
        if partition.leader == self.node_id:
            self._lead(partition, now_ms, change)
        else:
            self._follow(partition, change)
        return change

    def _lead(self, partition: PartitionImage, now_ms: int, change: ReplicaChange[T]) -> None:
        change.became_leader = partition.leader_epoch > self.leader_epoch
        self.follower = None
        if self.leader is None:
            self.leader = PartitionLeader(
                self.node_id,
                self.log,
                self._active_epoch,
                min_insync_replicas=self.min_insync_replicas,
                lag_time_max_ms=self._settings.lag_time_max_ms,
            )
        change.has_high_watermark_moved = self.leader.lead(partition, now_ms)

    def _follow(self, partition: PartitionImage, change: ReplicaChange[T]) -> None:
        if self.leader is not None:
            change.sent_away = tuple(self.leader.take_all_waiting())
            self.leader = None
        if self.follower is None:
            self.follower = PartitionFollower(self.log, backoff_ms=self._settings.backoff_ms)
        self.follower.is_in_sync = self.node_id in partition.isr
        change.became_follower = self.follower.follow(partition)

    def update_min_insync_replicas(self, min_insync_replicas: int, now_ms: int) -> bool:
        """Apply a changed `min.insync.replicas`; return True if the high watermark moved."""
        self.min_insync_replicas = min_insync_replicas
        if self.leader is None:
            return False
        return self.leader.update_min_insync_replicas(min_insync_replicas, now_ms)
