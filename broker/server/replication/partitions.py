"""The partitions this broker leads: which there are, and appending to them.

An append counts down the bytes that each fetch parked on the partition still misses, and wakes
those that have enough.
"""

from collections.abc import Callable, Iterable, Iterator

from broker.errors import ErrorCode, KafkaError
from broker.log.append import AppendInfo, AppendOrigin
from broker.log.partition_log import PartitionLog
from broker.model import TopicPartition
from broker.server.cluster.metadata_quorum import ClusterMetadata
from broker.server.replication.parked_fetches import ParkedFetch


class Partition:
    """One led partition: its log and who waits for it."""

    __slots__ = ("log", "parked")

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.parked: dict[ParkedFetch, None] = {}  # in order of arrival

    @property
    def topic_partition(self) -> TopicPartition:
        """Its name."""
        return self.log.topic_partition


class Partitions:
    """Every partition this broker leads, by topic name and by topic id."""

    def __init__(
        self,
        node_id: int,
        metadata: ClusterMetadata,
        *,
        wake: Callable[[Iterable[ParkedFetch]], None],
        on_flush_wanted: Callable[[], None],
    ) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._wake = wake
        self._on_flush_wanted = on_flush_wanted
        self._by_topic: dict[str, dict[int, Partition]] = {}
        self._names: dict[bytes, str] = {}

    # --- which partitions there are ---

    def add(self, log: PartitionLog) -> None:
        """Begin to lead a partition."""
        topic, partition = log.topic_partition
        self._by_topic.setdefault(topic, {})[partition] = Partition(log)
        self._names[log.topic_id] = topic

    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop leading a partition; its parked fetches are answered at once."""
        topic, partition = topic_partition
        removed = self._by_topic.get(topic, {}).pop(partition, None)
        if removed is not None:
            if not self._by_topic[topic]:
                del self._by_topic[topic]
                self._names.pop(removed.log.topic_id, None)
            self._wake(removed.parked)

    def replace_log(self, log: PartitionLog) -> None:
        """Go on with a copy of a partition's log that has all of it; raises KafkaError."""
        # The only replica has everything, so all of it is committed.
        log.advance_high_watermark(log.log_end_offset)
        self.get(*log.topic_partition).log = log

    def find(self, topic: str, partition: int) -> Partition | None:
        """Return a partition, or None when this broker does not lead it."""
        partitions = self._by_topic.get(topic)
        return None if partitions is None else partitions.get(partition)

    def get(self, topic: str, partition: int) -> Partition:
        """Return a partition; raises UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER.

        And KAFKA_STORAGE_ERROR where this broker should lead it and its log directory is offline.
        """
        found = self.find(topic, partition)
        if found is None:
            raise self._why_not_here(topic, partition)
        return found

    def _why_not_here(self, topic: str, partition: int) -> KafkaError:
        image = self._metadata.image.topics.by_name.get(topic)
        known = None if image is None else image.partitions.get(partition)
        if known is None:
            return KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )
        if known.leader == self._node_id:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The log directory is offline.")
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"The leader of {topic}-{partition} is {known.leader}"
        )

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
        """Return the partitions of one topic."""
        return self._by_topic.get(topic, {}).values()

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_topic.values():
            yield from partitions.values()

    # --- append, and wake who waited for it ---

    def append(
        self,
        partition: Partition,
        records: memoryview | bytes,
        *,
        timestamp_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendInfo:
        """Append batches as leader and make them visible; raises KafkaError, OSError."""
        log = partition.log
        before = log.log_end_offset
        info = log.append_as_leader(
            records, leader_epoch=log.leader_epoch, timestamp_ms=timestamp_ms, origin=origin
        )
        # The only replica has it, so it is committed.
        log.advance_high_watermark(log.log_end_offset)
        if log.place.flushes.next_due_ms() is not None:
            self._on_flush_wanted()
        if partition.parked and log.log_end_offset > before:
            self._count_down(partition, len(records))
        return info

    def _count_down(self, partition: Partition, size_bytes: int) -> None:
        for fetch in partition.parked:
            fetch.missing_bytes -= size_bytes
            if fetch.missing_bytes <= 0:
                self._wake((fetch,))
