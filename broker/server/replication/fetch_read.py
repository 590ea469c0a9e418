"""One pass over the partitions that a Fetch asks for, under its byte limits.

The first batch of the first partition that has one is always returned whole, however small the
limits are, so that a consumer can make progress (KIP-74). A consumer reads what is committed, a
follower all there is; where a follower reads from is counted as its position, once a request.

A throttled replica that is not in sync reads nothing while it had too much (KIP-73): the request
waits as if there were nothing, and its other partitions go on.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from broker.errors import KafkaError
from broker.log.index.transaction_index import AbortedTransaction as AbortedRange
from broker.log.partition_log import PartitionLog
from broker.model import OffsetAndEpoch
from broker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    PartitionData,
    ReplicaState,
)
from broker.replication.divergence import find_divergence
from broker.replication.fencing import validate_leader_epoch
from broker.replication.log import ReplicaLog
from broker.replication.read_replica import preferred_read_replica
from broker.server.cluster.current_leaders import SAYS_WHO_LEADS
from broker.server.network.walks import ITEMS_PER_STEP, Steps
from broker.server.replication.led_logs import LedLogs
from broker.server.replication.partitions import FollowerPosition, Leader, Partition

Key = tuple[bytes | str, int]
"""Topic id, or in old versions topic name, and partition."""
Asked = Sequence[tuple[Key, FetchPartition]]


class Reader(NamedTuple):
    """Who reads, and how much."""

    follower: ReplicaState | None
    max_bytes: int
    min_bytes: int
    is_read_committed: bool
    may_read_followers: bool
    rack: str
    """Where it is, when it is to be told of a replica there."""
    rack_of: Callable[[int], str | None]


class FetchRead:
    """See the module."""

    __slots__ = (
        "_has_news",
        "_logs",
        "_now_ms",
        "answers",
        "is_first",
        "is_held_back",
        "misdirected",
        "partitions",
        "reader",
        "size_bytes",
        "throttled_bytes",
    )

    def __init__(self, logs: LedLogs, reader: Reader) -> None:
        self._logs = logs
        self._now_ms = 0 if reader.follower is None else logs.clock.now_ms()
        self._has_news = False
        self.reader = reader
        self.is_first = True
        """Whether the request has just come: then a follower's position is noted."""
        self.is_held_back = False
        """Whether a throttle keeps it from reading something."""
        self.size_bytes = 0
        self.throttled_bytes = 0
        """Those of partitions that are throttled."""
        self.partitions: list[Partition] = []
        """Those that can be read: it may wait for them."""
        self.answers: list[tuple[Key, PartitionData]] = []
        self.misdirected: list[tuple[str, PartitionData]] = []
        """What another broker leads, by the topic's name."""

    def again(self) -> "FetchRead":
        """Return another pass for the same request."""
        again = FetchRead(self._logs, self.reader)
        again.is_first = False
        return again

    @property
    def is_enough(self) -> bool:
        """Whether the answer need not wait: enough bytes, or something else to tell."""
        return self._has_news or self.size_bytes >= self.reader.min_bytes

    @property
    def can_wait(self) -> bool:
        """Whether there may be more to read later."""
        return bool(self.partitions) or self.is_held_back

    def run(self, asked: Iterable[tuple[Key, FetchPartition]]) -> None:
        """Read every partition asked for."""
        for key, wanted in asked:
            self.answers.append((key, self._answer(key, wanted)))

    def walk(self, asked: Asked) -> Steps[None]:
        """Do what `run` does, step by step."""
        for start in range(0, len(asked), ITEMS_PER_STEP):
            self.run(asked[start : start + ITEMS_PER_STEP])
            yield

    def _answer(self, key: Key, wanted: FetchPartition) -> PartitionData:
        topic, name = key[0], ""
        try:
            name = topic if isinstance(topic, str) else self._logs.partitions.name_of(topic)
            return self._read(self._find(name, wanted), wanted)
        except KafkaError as error:
            return self._refused(name, wanted, error)
        except OSError as error:
            failure = self._logs.failures.on_failure(name, wanted.partition, error)
            return self._refused(name, wanted, failure)

    def _find(self, topic: str, wanted: FetchPartition) -> Partition:
        """Return a partition that may be read here; raises KafkaError."""
        found = self._logs.partitions.find(topic, wanted.partition)
        if found is not None and (
            found.leader is not None or (self.reader.may_read_followers and found.is_following)
        ):
            return found
        return self._logs.partitions.get(topic, wanted.partition)

    def _read(self, partition: Partition, wanted: FetchPartition) -> PartitionData:
        log, leader, follower = partition.log, partition.leader, self.reader.follower
        if leader is None:
            validate_leader_epoch(wanted.current_leader_epoch, partition.replica.leader_epoch)
            diverging = find_divergence(
                log,
                fetch_offset=wanted.fetch_offset,
                last_fetched_epoch=wanted.last_fetched_epoch,
            )
        else:
            if follower is not None:
                leader.validate_follower(follower.replica_id, follower.replica_epoch)
            diverging = leader.validate_fetch(
                wanted.current_leader_epoch, wanted.fetch_offset, wanted.last_fetched_epoch
            )
            if diverging is None and self.reader.rack and follower is None:
                elsewhere = self._read_elsewhere(leader, wanted)
                if elsewhere is not None:
                    return elsewhere
        if diverging is not None:
            return self._diverging(log, wanted, diverging)
        return self._read_log(partition, wanted)

    def _read_log(self, partition: Partition, wanted: FetchPartition) -> PartitionData:
        log, reader = partition.log, self.reader
        if reader.follower is not None:
            end = log.log_end_offset
        else:
            end = log.last_stable_offset if reader.is_read_committed else log.high_watermark
        left_bytes = reader.max_bytes - self.size_bytes
        throttle = self._logs.throttle
        is_throttled = (
            reader.follower is not None
            and throttle.is_used
            and throttle.is_throttled(*partition.topic_partition)
        )
        is_held_back = is_throttled and self._must_wait(partition)
        read = log.read(
            wanted.fetch_offset,
            max_bytes=0 if is_held_back else max(0, min(wanted.partition_max_bytes, left_bytes)),
            max_offset=end,
            minimum_one_batch=self.size_bytes == 0 and not is_held_back,
            with_aborted_transactions=reader.is_read_committed,
            is_replica=reader.follower is not None,
        )
        if reader.follower is not None and self.is_first:
            position = FollowerPosition(wanted.fetch_offset, wanted.log_start_offset)
            self._logs.partitions.note_follower(partition, reader.follower, position, self._now_ms)
        self.size_bytes += read.size_bytes
        if is_throttled:
            self.throttled_bytes += read.size_bytes
        if is_held_back:
            self.is_held_back = True  # An append is nothing to it: only time helps.
        else:
            self.partitions.append(partition)
        return PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=self._aborted(read.aborted_transactions),
            records=read.parts or b"",
        )

    def _must_wait(self, partition: Partition) -> bool:
        leader, follower = partition.leader, self.reader.follower
        assert leader is not None, partition.topic_partition
        assert follower is not None, partition.topic_partition
        return self._logs.throttle.must_wait(
            *partition.topic_partition,
            is_in_sync=follower.replica_id in leader.isr.committed,
            now_ms=self._now_ms,
        )

    def _aborted(self, aborted: list[AbortedRange]) -> list[AbortedTransaction] | None:
        if not self.reader.is_read_committed:
            return None
        return [
            AbortedTransaction(producer_id=found.producer_id, first_offset=found.first_offset)
            for found in aborted
        ]

    # --- answers without records: there is nothing to wait for ---

    def _read_elsewhere(self, leader: Leader, wanted: FetchPartition) -> PartitionData | None:
        """Name a replica in the consumer's own rack; None when it should read here."""
        preferred = preferred_read_replica(
            leader, self.reader.rack, wanted.fetch_offset, self.reader.rack_of
        )
        if preferred < 0:
            return None
        answer = self._without_records(leader.log, wanted)
        answer.preferred_read_replica = preferred
        return answer

    def _diverging(
        self, log: PartitionLog, wanted: FetchPartition, diverging: OffsetAndEpoch
    ) -> PartitionData:
        answer = self._without_records(log, wanted)
        answer.diverging_epoch = EpochEndOffset(
            epoch=diverging.leader_epoch, end_offset=diverging.offset
        )
        return answer

    def _without_records(self, log: ReplicaLog, wanted: FetchPartition) -> PartitionData:
        self._has_news = True
        return PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            records=b"",
        )

    def _refused(self, topic: str, wanted: FetchPartition, error: KafkaError) -> PartitionData:
        self._has_news = True
        refused = PartitionData(
            partition_index=wanted.partition,
            error_code=error.code,
            high_watermark=-1,
            log_start_offset=-1,
            aborted_transactions=None,
            records=b"",
        )
        if error.code in SAYS_WHO_LEADS:
            self.misdirected.append((topic, refused))
        return refused
