"""The replicas of this broker: their roles, appends to the leaders, and the requests that wait.

Invariants:

- `Partition.leader` is its replica's leader role, None while it follows: a Produce finds out with
  one attribute whether it may append.
- An append counts down the missing bytes of each follower's fetch that is parked on the partition.
  A consumer's fetch is counted down when the high watermark moves, or, with read_committed, the
  last stable offset. A fetch that has enough is woken.
- Every change that a follower at rest has to be told of, or that affects its position, ends in
  `rouse`.
- Every change that may have moved a high watermark ends in `on_high_watermark`, the only place that
  answers the appends that wait for it.
- Every change that may have changed the leader's request for its in-sync set ends in `look_at_isr`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from broker.log.append import AppendInfo, AppendOrigin, append_as_leader
from broker.log.partition_log import PartitionLog
from broker.log.producers.verification import NO_TRANSACTION, TransactionAppend
from broker.metadata.image import NO_LEADER, PartitionImage
from broker.model import TopicPartition
from broker.records.validation import UnpackBudget
from broker.replication.fetch_session.session import PartitionKey
from broker.replication.isr import IsrChange
from broker.replication.leader import PartitionLeader
from broker.replication.replica import Replica
from broker.replication.throttle import ReplicationThrottle
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.replication.parked_fetches import ParkedFetch
from broker.server.replication.resting import SessionRest
from broker.server.storage.failures import StorageFailures
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.fetch import ReplicaState


class AwaitsCommit(Protocol):
    """One append or deletion that waits for a watermark; exactly one method is called, once.

    It is a Produce with acks=all, the replies of a coordinator, or a DeleteRecords.
    """

    def on_committed(self, error_code: ErrorCode) -> None:
        """Handle the commit: every in-sync replica has it; there may be too few of them."""

    def on_sent_away(self) -> None:
        """Handle the loss of leadership: other brokers decide whether it is committed."""


Leader = PartitionLeader[AwaitsCommit]

UNKNOWN_BYTES = 1 << 40
"""More bytes than any fetch waits for."""


class Partition:
    """One replica: its log, its role, and the requests that wait for it."""

    __slots__ = (
        "is_held_back",
        "is_removed",
        "lag",
        "leader",
        "log",
        "parked",
        "parked_followers",
        "quiet_bytes",
        "replica",
        "resting",
        "stable_offset",
        "topic_partition",
        "uncommitted_bytes",
    )

    def __init__(self, log: PartitionLog, replica: Replica[AwaitsCommit]) -> None:
        self.topic_partition: TopicPartition = log.topic_partition
        self.log = log
        self.replica = replica
        self.leader: Leader | None = None
        self.is_removed = False
        self.lag = 0
        """How many committed records a follower is known to lack."""
        self.parked: dict[ParkedFetch, None] = {}
        """Fetches of consumers, in order of arrival."""
        self.parked_followers: dict[ParkedFetch, None] = {}
        self.stable_offset = log.last_stable_offset
        """The last stable offset at the last wake-up of consumers."""
        self.is_held_back = False
        """True if the high watermark was above the last stable offset at the last wake-up."""
        self.quiet_bytes = 0
        """Appended bytes that no request waits for: no follower has been woken for them."""
        self.resting: dict[int, tuple[SessionRest, PartitionKey]] = {}
        """The sessions of followers, by broker id, that skip this partition until it is roused."""
        self.uncommitted_bytes = 0
        """At least the bytes that were appended since the high watermark moved last."""

    @property
    def key(self) -> tuple[bytes, int]:
        """Its topic's id and its number, which no other partition ever has."""
        return self.log.topic_id, self.topic_partition.partition

    @property
    def is_following(self) -> bool:
        """True if it follows a leader, and so knows the high watermark."""
        follower = self.replica.follower
        return follower is not None and follower.leader_id != NO_LEADER

    def use_log(self, log: PartitionLog) -> None:
        """Replace the log with a complete copy."""
        self.log = self.replica.log = log
        leader, follower = self.replica.leader, self.replica.follower
        if leader is not None:
            leader.log = log
            # An epoch that has no records yet is not copied with them.
            log.become_leader(leader.leader_epoch)
        if follower is not None:
            follower.log = log


class FollowerPosition(NamedTuple):
    """The bounds of a follower's log."""

    fetch_offset: int
    log_start_offset: int


class Partitions:
    """Every replica of this broker, by topic name."""

    def __init__(
        self,
        node_id: int,
        metadata: ClusterMetadata,
        clock: Clock,
        *,
        wake: Callable[[Iterable[ParkedFetch]], None],
        on_flush_wanted: Callable[[], None],
        tells_followers_at_once: bool = False,
    ) -> None:
        self.node_id = node_id
        self._metadata = metadata
        self._clock = clock
        self._wake = wake
        self._on_flush_wanted = on_flush_wanted
        self.tells_followers_at_once = tells_followers_at_once
        """True if a new high watermark wakes followers' fetches: consumers read from followers,
        which learn the high watermark from these answers only (KIP-392)."""
        self._by_topic: dict[str, dict[int, Partition]] = {}
        self._names: dict[bytes, str] = {}
        self._expected: dict[str, set[int]] = {}
        self.on_isr_change: Callable[[Partition, IsrChange], None] = lambda partition, change: None
        """Called with every change that a leader requests for its in-sync set."""

    # --- which partitions there are ---

    def expect(self, topic: str, numbers: Iterable[int]) -> None:
        """Expect replicas of a topic, which are about to be opened."""
        self._expected.setdefault(topic, set()).update(numbers)

    def expect_no_more(self, topic_partition: TopicPartition) -> None:
        """End the expectation: the replica is open, or will not be opened."""
        topic, number = topic_partition
        expected = self._expected.get(topic, set())
        expected.discard(number)
        if not expected:
            self._expected.pop(topic, None)

    def expect_none(self, topic: str) -> None:
        """End all expectations of a topic, which is deleted."""
        self._expected.pop(topic, None)

    def is_complete(self, topic: str) -> bool:
        """Return whether no replica of a topic is expected."""
        return topic not in self._expected

    def add(self, partition: Partition) -> None:
        """Add a replica."""
        topic, number = partition.topic_partition
        self._by_topic.setdefault(topic, {})[number] = partition
        self._names[partition.log.topic_id] = topic

    def remove(self, topic_partition: TopicPartition) -> Partition | None:
        """Remove a replica; the requests that wait at it are answered at once."""
        topic, number = topic_partition
        removed = self._by_topic.get(topic, {}).pop(number, None)
        if removed is None:
            return None
        if not self._by_topic[topic]:
            del self._by_topic[topic]
            self._names.pop(removed.log.topic_id, None)
        waiting = removed.leader.take_all_waiting() if removed.leader is not None else []
        removed.leader = None
        removed.is_removed = True
        self._send_away(removed, waiting)
        return removed

    def find(self, topic: str, partition: int) -> Partition | None:
        """Return a replica of this broker, whatever its role; None when there is none."""
        partitions = self._by_topic.get(topic)
        return None if partitions is None else partitions.get(partition)

    def get(self, topic: str, partition: int) -> Partition:
        """Return a partition led here; raises UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER.

        It raises KAFKA_STORAGE_ERROR if the partition is led here and its log directory is offline.
        """
        partitions = self._by_topic.get(topic)
        found = None if partitions is None else partitions.get(partition)
        if found is None or found.leader is None:
            raise self._why_not_here(topic, partition)
        return found

    def _why_not_here(self, topic: str, partition: int) -> KafkaError:
        known = self._image_of(topic, partition)
        if known is None:
            return KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )
        if known.leader == self.node_id and partition not in self._expected.get(topic, ()):
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The log directory is offline.")
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"The leader of {topic}-{partition} is {known.leader}"
        )

    def _image_of(self, topic: str, partition: int) -> PartitionImage | None:
        image = self._metadata.image.topics.by_name.get(topic)
        return None if image is None else image.partitions.get(partition)

    def name_of(self, topic_id: bytes) -> str:
        """Return the name of a topic; raises UNKNOWN_TOPIC_ID."""
        name = self._names.get(topic_id)
        if name is None:
            image = self._metadata.image.topics.by_id.get(topic_id)
            if image is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID."
                )
            name = image.name
        return name

    def topic(self, topic: str) -> Iterable[Partition]:
        """Return the replicas of one topic that are here."""
        return self._by_topic.get(topic, {}).values()

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_topic.values():
            yield from partitions.values()

    # --- their roles ---

    def apply(self, partition: Partition, image: PartitionImage) -> bool:
        """Apply the metadata; return whether the partition leads or follows in a new epoch."""
        change = partition.replica.apply(image, self._clock.now_ms())
        partition.leader = partition.replica.leader
        if change.became_leader:
            # The bytes above the high watermark were appended in another role.
            partition.uncommitted_bytes = UNKNOWN_BYTES
        if partition.leader is None:
            self._send_away(partition, change.sent_away)
        elif change.has_high_watermark_moved:
            self.on_high_watermark(partition)
        self.rouse(partition)
        self.look_at_isr(partition)
        return change.became_leader or change.became_follower

    def _send_away(self, partition: Partition, waiting: Iterable[AwaitsCommit]) -> None:
        partition.uncommitted_bytes = 0
        for waits in waiting:
            waits.on_sent_away()
        self._wake(partition.parked)
        self._wake(partition.parked_followers)
        self.rouse(partition, UNKNOWN_BYTES)

    # --- append, and wake who waited for it ---

    def append(
        self,
        partition: Partition,
        records: memoryview | bytes,
        *,
        timestamp_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction: TransactionAppend = NO_TRANSACTION,
        is_awaited: bool = True,
        budget: UnpackBudget | None = None,
    ) -> AppendInfo:
        """Append batches as leader; raises KafkaError, OSError.

        If this broker is the only in-sync replica, the append commits them. An append that no
        request waits for does not wake the followers: they get it with a later one; see `stir`.
        """
        log, leader = partition.log, partition.leader
        assert leader is not None, partition.topic_partition
        before = log.log_end_offset
        info = append_as_leader(
            log, records, leader.leader_epoch, timestamp_ms, origin, transaction, budget
        )
        if log.place.flushes.waiting:
            self._on_flush_wanted()
        if leader.followers:
            if log.log_end_offset > before:
                self._on_appended(partition, leader, len(records), is_awaited=is_awaited)
            return info
        log.advance_high_watermark(log.log_end_offset)
        if log.log_end_offset > before:
            self._tell_consumers(partition, len(records))
        return info

    def _on_appended(
        self, partition: Partition, leader: Leader, size_bytes: int, *, is_awaited: bool
    ) -> None:
        partition.uncommitted_bytes += size_bytes
        partition.quiet_bytes += size_bytes
        if is_awaited:
            self.stir(partition)
        if leader.note_append(self._clock.now_ms()):
            self.on_high_watermark(partition)

    def stir(self, partition: Partition) -> None:
        """Wake the followers for quiet appends, because a request waits for them."""
        size_bytes, partition.quiet_bytes = partition.quiet_bytes, 0
        if size_bytes:
            if partition.parked_followers:
                self._count_down(partition.parked_followers, size_bytes)
            if partition.resting:
                self.rouse(partition, size_bytes)

    def _count_down(self, parked: Iterable[ParkedFetch], size_bytes: int) -> None:
        for fetch in parked:
            fetch.missing_bytes -= size_bytes
            if fetch.missing_bytes <= 0:
                self._wake((fetch,))

    def on_high_watermark(self, partition: Partition) -> None:
        """Answer the requests that waited for a high watermark that has moved."""
        leader = partition.leader
        if leader is not None and len(leader.waits):
            error_code = leader.append_error()
            for waits in leader.take_fulfilled():
                waits.on_committed(error_code)
        # Not all of these bytes may be committed: a fetch that is woken too early waits again.
        self._tell_consumers(partition, partition.uncommitted_bytes)
        partition.uncommitted_bytes = 0
        if self.tells_followers_at_once:
            self._count_down(partition.parked_followers, UNKNOWN_BYTES)
            self.rouse(partition, UNKNOWN_BYTES)
        elif partition.resting:
            self.rouse(partition)

    def rouse(self, partition: Partition, size_bytes: int = 0) -> None:
        """Put a resting partition back into followers' sessions; wake their fetches if it grew.

        A session whose fetch still waits stays in `resting`, to be told of the next append.
        """
        resting = partition.resting
        for follower_id, (rest, key) in list(resting.items()):
            fetch = rest.rouse(key, size_bytes)
            if fetch is not None:
                self._wake((fetch,))
            if not rest.is_waiting:
                del resting[follower_id]

    def _tell_consumers(self, partition: Partition, size_bytes: int) -> None:
        """Count down the committed bytes, with read_committed those below the last stable offset.

        The end of a transaction makes all records readable that were held back behind it.
        """
        log, was_held_back = partition.log, partition.is_held_back
        before, stable = partition.stable_offset, log.last_stable_offset
        partition.stable_offset, partition.is_held_back = stable, stable < log.high_watermark
        for fetch in partition.parked:
            if not fetch.is_read_committed:
                self._count_down((fetch,), size_bytes)
            elif stable != before:
                self._count_down((fetch,), UNKNOWN_BYTES if was_held_back else size_bytes)

    # --- followers and the in-sync set ---

    def note_follower(
        self,
        partition: Partition,
        follower: ReplicaState,
        position: FollowerPosition,
        now_ms: int,
    ) -> None:
        """Record the position of a follower of this leader, after all checks."""
        leader = partition.leader
        assert leader is not None, partition.topic_partition
        if leader.note_fetch(follower.replica_id, follower.replica_epoch, *position, now_ms):
            self.on_high_watermark(partition)
        self.look_at_low_watermark(partition)
        self.look_at_isr(partition)

    def delete_records_before(self, partition: Partition, offset: int) -> None:
        """Move the start of a log led here, and wake its followers. Raises KafkaError."""
        partition.log.delete_records_before(offset)
        self._wake(partition.parked_followers)
        self.rouse(partition, UNKNOWN_BYTES)

    def look_at_low_watermark(self, partition: Partition) -> None:
        """Answer the requests that waited until every live replica has deleted its records."""
        leader = partition.leader
        if leader is not None and leader.deletions:
            for waits in leader.take_deleted():
                waits.on_committed(ErrorCode.NONE)

    def on_brokers_changed(self) -> None:
        """Stop waiting for the position of a broker that may be gone."""
        self.reconsider()
        for partition in self:
            self.look_at_low_watermark(partition)
            # A follower whose incarnation is not the registered one has to get an error.
            self.rouse(partition)

    def reconsider(self) -> None:
        """Let every leader compute again which followers it has to wait for."""
        now_ms = self._clock.now_ms()
        for partition in self:
            leader = partition.leader
            if leader is not None and leader.reconsider(now_ms):
                self.on_high_watermark(partition)

    def look_at_isr(self, partition: Partition) -> None:
        """Pass on the leader's request for a change of its in-sync set, if there is one."""
        leader = partition.leader
        change = leader.take_isr_change() if leader is not None else None
        if change is not None:
            self.on_isr_change(partition, change)

    def update_min_insync_replicas(self, partition: Partition) -> None:
        """Follow the topic's settings."""
        wanted = partition.log.config.min_insync_replicas
        if partition.replica.update_min_insync_replicas(wanted, self._clock.now_ms()):
            self.on_high_watermark(partition)


class LedLogs(NamedTuple):
    """The partitions, the clock, the handling of a failed disk, and the throttles."""

    partitions: Partitions
    clock: Clock
    failures: StorageFailures
    throttle: ReplicationThrottle
