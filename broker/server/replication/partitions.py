"""The replicas that are here: which there are, appending to those that lead, and who waits for it.

Invariants:

- `Partition.leader` is its replica's leader role, None while it follows: so a produce finds out
  with one look whether it may append.
- An append counts down the bytes that each follower's fetch parked here still misses; a consumer's
  fetch is counted down when the high watermark moves, or the last stable offset for one that reads
  only what is decided. Those that have enough are woken.
- Whatever may change what a follower at rest is told, or counts, ends in `rouse`.
- Whatever may have moved a high watermark ends in `on_high_watermark`: appends that wait for it are
  answered there and nowhere else.
- Whatever may have changed what the leader wants of its in-sync set ends in `look_at_isr`.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from broker.errors import ErrorCode, KafkaError
from broker.log.append import AppendInfo, AppendOrigin, append_as_leader
from broker.log.partition_log import PartitionLog
from broker.log.producers.verification import NO_TRANSACTION, TransactionAppend
from broker.metadata.image import NO_LEADER, PartitionImage
from broker.model import TopicPartition
from broker.protocol.messages.fetch import ReplicaState
from broker.records.validation import UnpackBudget
from broker.replication.fetch_session.session import PartitionKey
from broker.replication.isr import IsrChange
from broker.replication.leader import PartitionLeader
from broker.replication.replica import Replica
from broker.server.clock import Clock
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.replication.commits import AwaitsCommit
from broker.server.replication.parked_fetches import ParkedFetch
from broker.server.replication.resting import SessionRest

Leader = PartitionLeader[AwaitsCommit]

UNKNOWN_BYTES = 1 << 40
"""More than anybody waits for."""


class Partition:
    """One replica: its log, its role, and who waits for it."""

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
        """Consumers, in order of arrival."""
        self.parked_followers: dict[ParkedFetch, None] = {}
        self.stable_offset = log.last_stable_offset
        """Where readers of what is decided stopped when it was told last."""
        self.is_held_back = False
        """Whether more was committed than decided then."""
        self.quiet_bytes = 0
        """What was appended that nobody waits for: no follower has been woken for it."""
        self.resting: dict[int, tuple[SessionRest, PartitionKey]] = {}
        """Followers whose session need not look at it, until it is roused, by broker id."""
        self.uncommitted_bytes = 0
        """At least what was appended since the high watermark moved last."""

    @property
    def key(self) -> tuple[bytes, int]:
        """Its topic's id and its number: what no other partition ever has."""
        return self.log.topic_id, self.topic_partition.partition

    @property
    def is_following(self) -> bool:
        """Whether it follows a leader, and so knows what is committed."""
        follower = self.replica.follower
        return follower is not None and follower.leader_id != NO_LEADER

    def use_log(self, log: PartitionLog) -> None:
        """Go on with a copy of the log that has all of it."""
        self.log = self.replica.log = log
        leader, follower = self.replica.leader, self.replica.follower
        if leader is not None:
            leader.log = log
            # An epoch that has no records yet is not copied with them.
            log.become_leader(leader.leader_epoch)
        if follower is not None:
            follower.log = log


class FollowerPosition(NamedTuple):
    """Where a follower's log begins and ends."""

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
        """Whether followers hear of a new high watermark without waiting for records: consumers
        read there, and nothing else tells them what is committed (KIP-392)."""
        self._by_topic: dict[str, dict[int, Partition]] = {}
        self._names: dict[bytes, str] = {}
        self._expected: dict[str, set[int]] = {}
        self.on_isr_change: Callable[[Partition, IsrChange], None] = lambda partition, change: None
        """Told of every change that a leader wants of its in-sync set."""

    # --- which partitions there are ---

    def expect(self, topic: str, numbers: Iterable[int]) -> None:
        """Take note that replicas of a topic will be here in a moment."""
        self._expected.setdefault(topic, set()).update(numbers)

    def expect_no_more(self, topic_partition: TopicPartition) -> None:
        """Take note that it is here now, or will not be."""
        topic, number = topic_partition
        expected = self._expected.get(topic, set())
        expected.discard(number)
        if not expected:
            self._expected.pop(topic, None)

    def is_complete(self, topic: str) -> bool:
        """Whether every replica of a topic is here that should be, for all that is known."""
        return topic not in self._expected

    def add(self, partition: Partition) -> None:
        """Have a replica here."""
        topic, number = partition.topic_partition
        self._by_topic.setdefault(topic, {})[number] = partition
        self._names[partition.log.topic_id] = topic

    def remove(self, topic_partition: TopicPartition) -> Partition | None:
        """Have a replica no longer; whoever waits here is answered at once."""
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

        And KAFKA_STORAGE_ERROR where this broker should lead it and its log directory is offline.
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
        """Follow the metadata; tell whether the partition leads, or follows, in a new epoch."""
        change = partition.replica.apply(image, self._clock.now_ms())
        partition.leader = partition.replica.leader
        if change.became_leader:
            # What lies above the high watermark now was not counted here.
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

    def append(  # noqa: PLR0913 - one call for each append, without an object for it
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

        Where this broker is all there is in sync, they are committed by that. What nobody waits for
        goes to the followers with what comes next, or when they ask again; see `stir`.
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
        """Wake the followers for what was appended quietly, as somebody waits for it now."""
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
        """Answer whoever waited for a high watermark that has moved."""
        leader = partition.leader
        if leader is not None and len(leader.waits):
            error_code = leader.append_error()
            for waits in leader.take_fulfilled():
                waits.on_committed(error_code)
        # Perhaps not all of these bytes are committed: who is woken too early looks, and waits.
        self._tell_consumers(partition, partition.uncommitted_bytes)
        partition.uncommitted_bytes = 0
        if self.tells_followers_at_once:
            self._count_down(partition.parked_followers, UNKNOWN_BYTES)
            self.rouse(partition, UNKNOWN_BYTES)
        elif partition.resting:
            self.rouse(partition)

    def rouse(self, partition: Partition, size_bytes: int = 0) -> None:
        """Have followers look at a partition that was at rest for them, at once if it grew.

        Whoever still waits afterwards is kept: nothing else tells it of what is appended next.
        """
        resting = partition.resting
        for follower_id, (rest, key) in list(resting.items()):
            fetch = rest.rouse(key, size_bytes)
            if fetch is not None:
                self._wake((fetch,))
            if not rest.is_waiting:
                del resting[follower_id]

    def _tell_consumers(self, partition: Partition, size_bytes: int) -> None:
        """Count what is committed now; who reads only what is decided waits until it is.

        With the end of a transaction all that was held back behind it can be read.
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
        """Count a follower of this leader that fetches from there, after all checks."""
        leader = partition.leader
        assert leader is not None, partition.topic_partition
        if leader.note_fetch(follower.replica_id, follower.replica_epoch, *position, now_ms):
            self.on_high_watermark(partition)
        self.look_at_low_watermark(partition)
        self.look_at_isr(partition)

    def delete_records_before(self, partition: Partition, offset: int) -> None:
        """Move the start of a log led here; followers that wait hear of it. Raises KafkaError."""
        partition.log.delete_records_before(offset)
        self._wake(partition.parked_followers)
        self.rouse(partition, UNKNOWN_BYTES)

    def look_at_low_watermark(self, partition: Partition) -> None:
        """Answer who waited until every replica alive has deleted its records."""
        leader = partition.leader
        if leader is not None and leader.deletions:
            for waits in leader.take_deleted():
                waits.on_committed(ErrorCode.NONE)

    def on_brokers_changed(self) -> None:
        """Take note that a broker may be gone: nobody waits for what it has."""
        self.reconsider()
        for partition in self:
            self.look_at_low_watermark(partition)
            # A follower of another incarnation than the one that is registered has to be told so.
            self.rouse(partition)

    def reconsider(self) -> None:
        """Let every leader see whom it need not wait for any more."""
        now_ms = self._clock.now_ms()
        for partition in self:
            leader = partition.leader
            if leader is not None and leader.reconsider(now_ms):
                self.on_high_watermark(partition)

    def look_at_isr(self, partition: Partition) -> None:
        """Pass on what the leader wants to be changed, if anything."""
        leader = partition.leader
        change = leader.take_isr_change() if leader is not None else None
        if change is not None:
            self.on_isr_change(partition, change)

    def update_min_insync_replicas(self, partition: Partition) -> None:
        """Follow the topic's settings."""
        wanted = partition.log.config.min_insync_replicas
        if partition.replica.update_min_insync_replicas(wanted, self._clock.now_ms()):
            self.on_high_watermark(partition)
