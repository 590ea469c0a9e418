"""One pass over the partitions that a Fetch asks for, under its byte limits.

The first batch of the first partition that has one is always returned whole, however small the
limits are, so that a consumer can make progress (KIP-74). A consumer reads committed records, a
follower reads up to the log's end; its fetch offset is recorded as its position, once per request.
Most partitions of a follower's session are at rest, and are not read at all (`resting`).

A throttled replica that is not in sync reads no records while its rate is exceeded (KIP-73): the
request waits as if the partition had no records, and its other partitions are read.
"""

from collections.abc import Iterable

from broker.log.index.transaction_index import AbortedTransaction as AbortedRange
from broker.log.partition_log import PartitionLog
from broker.model import OffsetAndEpoch
from broker.replication.divergence import find_divergence, validate_leader_epoch
from broker.replication.fetch_session.session import SessionPartition
from broker.replication.log import ReplicaLog
from broker.replication.read_replica import preferred_read_replica
from broker.server.cluster.cluster_view import SAYS_WHO_LEADS
from broker.server.handlers.fetch.fetch_question import Asked, Key, Question, RackOf
from broker.server.network.later import ITEMS_PER_STEP, Steps
from broker.server.replication.partitions import FollowerPosition, Leader, LedLogs, Partition
from common.kafka.errors import KafkaError
from common.kafka.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    PartitionData,
    ReplicaState,
)


class FetchRead:
    """Owns one pass: what was read so far, and the bytes that are left."""

    __slots__ = (
        "_has_news",
        "_is_follower_valid",
        "_logs",
        "_now_ms",
        "_seen_ends",
        "answers",
        "is_first",
        "is_held_back",
        "misdirected",
        "partitions",
        "question",
        "size_bytes",
        "throttled_bytes",
    )

    def __init__(self, logs: LedLogs, question: Question) -> None:
        self._logs = logs
        self._now_ms = 0 if question.follower is None else logs.clock.now_ms()
        self._has_news = False
        self._is_follower_valid = False
        self._seen_ends: list[int] = []
        """The ends of `partitions` at the time they were read."""
        self.question = question
        self.is_first = True
        """True for the first pass of a request, which records a follower's position."""
        self.is_held_back = False
        """True if a throttle has kept a partition from being read."""
        self.size_bytes = 0
        self.throttled_bytes = 0
        """The bytes of throttled partitions."""
        self.partitions: list[Partition] = []
        """The partitions that can be read, and for which it may wait."""
        self.answers: list[tuple[Key, PartitionData]] = []
        self.misdirected: list[tuple[str, PartitionData]] = []
        """The answers of partitions that another broker leads, by the topic's name."""

    def again(self) -> "FetchRead":
        """Return another pass for the same request."""
        again = FetchRead(self._logs, self.question)
        again.is_first = False
        return again

    @property
    def is_enough(self) -> bool:
        """True if the answer need not wait: there are enough bytes, or other news."""
        return self._has_news or self.size_bytes >= self.question.min_bytes

    @property
    def can_wait(self) -> bool:
        """True if there may be more to read later."""
        return bool(self.partitions) or self.is_held_back or self.question.rest is not None

    def run(self, asked: Iterable[tuple[Key, FetchPartition]]) -> None:
        """Read every partition asked for."""
        session = self.question.session
        if session is None or self.question.follower is None:
            for key, wanted in asked:
                self.answers.append((key, self._answer(key, wanted)))
            return
        self._is_follower_valid = False  # Another incarnation may have come since the last step.
        for key, wanted in asked:
            known = session.partitions.get(key)
            if known is None or known.asked is not wanted:
                self.answers.append((key, self._answer(key, wanted)))
            elif not self._passes_over(key, known, self.question.follower):
                before, size_bytes = len(self.partitions), self.size_bytes
                self.answers.append((key, self._answer(key, wanted)))
                is_well = len(self.partitions) > before
                known.read_from = self.partitions[-1] if is_well else None
                if is_well and self._logs.partitions.tells_followers_at_once:
                    log = self.partitions[-1].log
                    self._has_news |= not known.is_told(log.high_watermark, log.log_start_offset)
                if self.question.rest is not None and self.size_bytes > size_bytes:
                    self.question.rest.note_records(key)

    def _passes_over(self, key: Key, known: SessionPartition, follower: ReplicaState) -> bool:
        """Record the position of a follower that is up to date; return False to read the partition.

        Its fetch offset was compared with this log, in this leader epoch, when it was last read.
        """
        partition, wanted = known.read_from, known.asked
        if not isinstance(partition, Partition) or self._logs.throttle.is_used:
            return False
        leader, log = partition.leader, partition.log
        if (
            leader is None
            or wanted.fetch_offset != log.log_end_offset
            or wanted.current_leader_epoch != leader.leader_epoch
            or follower.replica_id not in leader.followers
            or not self._is_valid(follower, leader)
        ):
            return False
        if self.is_first:
            position = FollowerPosition(wanted.fetch_offset, wanted.log_start_offset)
            self._logs.partitions.note_follower(partition, follower, position, self._now_ms)
        if not known.is_told(log.high_watermark, log.log_start_offset):
            return False
        rest = self.question.rest
        if rest is not None and follower.replica_id in leader.isr.maximal:
            rest.news.pop(key, None)
            partition.resting[follower.replica_id] = rest, key
        else:
            self.partitions.append(partition)
        return True

    def _is_valid(self, follower: ReplicaState, leader: Leader) -> bool:
        """Return whether it is the registered incarnation: the same for all partitions."""
        if not self._is_follower_valid:
            try:
                leader.validate_follower(follower.replica_id, follower.replica_epoch)
            except KafkaError:
                return False  # Reading the partition raises the error.
            self._is_follower_valid = True
        return True

    def steps(self, asked: Asked) -> Steps[None]:
        """Do what `run` does, step by step."""
        for start in range(0, len(asked), ITEMS_PER_STEP):
            first = len(self.partitions)
            self.run(asked[start : start + ITEMS_PER_STEP])
            self._seen_ends += map(self._end_of, self.partitions[first:])
            yield None

    def _end_of(self, partition: Partition) -> int:
        if self.question.follower is not None:
            return partition.log.log_end_offset
        return self._readable_end(partition.log)

    def _readable_end(self, log: PartitionLog) -> int:
        if self.question.is_debugging:
            return log.log_end_offset
        return log.last_stable_offset if self.question.is_read_committed else log.high_watermark

    @property
    def is_overtaken(self) -> bool:
        """True if a partition has grown since it was read step by step."""
        return any(
            self._end_of(partition) > seen_end
            for partition, seen_end in zip(self.partitions, self._seen_ends, strict=False)
        )

    def _answer(self, key: Key, wanted: FetchPartition) -> PartitionData:
        (topic, number), name = key, ""
        partitions = self._logs.partitions
        try:
            name = topic if isinstance(topic, str) else partitions.name_of(topic)
            partition = partitions.find(name, number)
            if partition is None or partition.leader is None:
                partition = self._find_follower(name, number)
            told = self._instead_of_records(partition, wanted)
            if told is not None:
                return told
            follower = self.question.follower
            if follower is not None:
                return self._replicate(partition, wanted, follower)
            return self._consume(partition, wanted)
        except KafkaError as error:
            return self._refused(name, wanted, error)
        except OSError as error:
            failure = self._logs.failures.on_failure(name, number, error)
            return self._refused(name, wanted, failure)

    def _find_follower(self, topic: str, number: int) -> Partition:
        """Return a partition that may be read although it does not lead; raises KafkaError."""
        found = self._logs.partitions.find(topic, number)
        if found is not None and self.question.may_read_followers and found.is_following:
            return found
        return self._logs.partitions.get(topic, number)

    def _instead_of_records(
        self, partition: Partition, wanted: FetchPartition
    ) -> PartitionData | None:
        """Fence the reader; return an answer without records, if any; raises KafkaError."""
        log, leader, question = partition.log, partition.leader, self.question
        if leader is None:
            validate_leader_epoch(wanted.current_leader_epoch, partition.replica.leader_epoch)
            diverging = find_divergence(
                log,
                fetch_offset=wanted.fetch_offset,
                last_fetched_epoch=wanted.last_fetched_epoch,
            )
        else:
            follower = question.follower
            if follower is not None:
                leader.validate_follower(follower.replica_id, follower.replica_epoch)
            diverging = leader.validate_fetch(
                wanted.current_leader_epoch, wanted.fetch_offset, wanted.last_fetched_epoch
            )
            if question.rack_of is not None and diverging is None:
                return self._read_elsewhere(leader, wanted, question.rack_of)
        return None if diverging is None else self._diverging(log, wanted, diverging)

    def _consume(self, partition: Partition, wanted: FetchPartition) -> PartitionData:
        log, is_read_committed = partition.log, self.question.is_read_committed
        stable_offset = log.last_stable_offset
        size_bytes = self.size_bytes
        left_bytes = self.question.max_bytes - size_bytes
        parts, read_bytes, aborted = log.read(
            wanted.fetch_offset,
            max_bytes=max(0, min(wanted.partition_max_bytes, left_bytes)),
            max_offset=self._readable_end(log)
            if self.question.is_debugging
            else stable_offset
            if is_read_committed
            else log.high_watermark,
            minimum_one_batch=size_bytes == 0,
            with_aborted_transactions=is_read_committed,
        )
        self.size_bytes = size_bytes + read_bytes
        self.partitions.append(partition)
        return PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=_aborted(aborted) if is_read_committed else None,
            records=parts[0] if parts else b"",
        )

    def _replicate(
        self, partition: Partition, wanted: FetchPartition, follower: ReplicaState
    ) -> PartitionData:
        log, throttle = partition.log, self._logs.throttle
        is_throttled = throttle.is_used and throttle.is_throttled(*partition.topic_partition)
        is_held_back = is_throttled and self._must_wait(partition, follower)
        is_read_committed = self.question.is_read_committed
        read = log.read(
            wanted.fetch_offset,
            max_bytes=0
            if is_held_back
            else max(0, min(wanted.partition_max_bytes, self.question.max_bytes - self.size_bytes)),
            max_offset=log.log_end_offset,
            minimum_one_batch=self.size_bytes == 0 and not is_held_back,
            with_aborted_transactions=is_read_committed,
            is_replica=True,
        )
        if self.is_first:
            position = FollowerPosition(wanted.fetch_offset, wanted.log_start_offset)
            self._logs.partitions.note_follower(partition, follower, position, self._now_ms)
        self.size_bytes += read.size_bytes
        if is_throttled:
            self.throttled_bytes += read.size_bytes
        if is_held_back:
            self.is_held_back = True  # An append does not wake it; only time does.
        else:
            self.partitions.append(partition)
        return PartitionData(
            partition_index=wanted.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=_aborted(read.aborted_transactions) if is_read_committed else None,
            records=read.parts[0] if read.parts else b"",
        )

    def _must_wait(self, partition: Partition, follower: ReplicaState) -> bool:
        leader = partition.leader
        assert leader is not None, partition.topic_partition
        return self._logs.throttle.must_wait(
            *partition.topic_partition,
            is_in_sync=follower.replica_id in leader.isr.committed,
            now_ms=self._now_ms,
        )

    # --- answers without records: there is nothing to wait for ---

    def _read_elsewhere(
        self, leader: Leader, wanted: FetchPartition, rack_of: RackOf
    ) -> PartitionData | None:
        """Name a replica in the consumer's own rack; None when it should read here."""
        rack = self.question.request.rack_id
        preferred = preferred_read_replica(leader, rack, wanted.fetch_offset, rack_of)
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


def _aborted(aborted: list[AbortedRange]) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(producer_id=found.producer_id, first_offset=found.first_offset)
        for found in aborted
    ]
