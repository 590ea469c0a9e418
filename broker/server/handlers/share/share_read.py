"""The reading of one ShareFetch: which share-partitions have records, and who gets them.

The bytes are divided evenly among the share-partitions that have something to give. A partition is
read and acquired in one step, so no other fetch comes between.
"""

from collections.abc import Sequence
from typing import NamedTuple

from broker.records.errors import CorruptBatch
from broker.server.clock import monotonic_seconds
from broker.server.cluster.cluster_view import SAYS_WHO_LEADS
from broker.server.network.later import Steps
from broker.server.replication.partitions import Partition
from broker.server.share.led_share_partition import LedSharePartition, LedState
from broker.server.share.log_slice import NO_RECORDS, NOTHING_READ, Chunk, LogSlice, slice_of
from broker.server.share.share_partitions import SharePartitions
from broker.share.acquisition import Acquired, Demand
from broker.share.session import PartitionKey
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.share_fetch import AcquiredRecords, PartitionData

KNOWN_TO_CLIENTS = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CORRUPT_MESSAGE,
    }
)
"""Java's consumer stops at every other code of a partition but UNKNOWN_SERVER_ERROR."""


PARTITIONS_PER_STEP = 64
READS_AT_ONCE = 8
"""The reads of one share-partition for one answer, if those before give no record."""


class Wanted(NamedTuple):
    """What a ShareFetch asks for."""

    demand: Demand
    max_bytes: int
    min_bytes: int


class ShareRead:
    """Owns one reading: the share-partitions that are led here, and what each gives."""

    def __init__(self, shares: SharePartitions, group_id: str, wanted: Wanted) -> None:
        self._shares = shares
        self._group_id = group_id
        self._wanted = wanted
        self.led: dict[PartitionKey, LedSharePartition] = {}
        self.answers: dict[PartitionKey, PartitionData] = {}
        self.size_bytes = 0
        self.acquired_count = 0
        """The number of partitions that gave records."""
        self._is_enough = False
        """True if there is something to answer at once."""
        self.reads_committed = shares.settings_of(group_id).reads_committed

    def open(self, keys: Sequence[PartitionKey]) -> Steps[None]:
        """Find the share-partitions, a number in each step; a new one begins to load.

        An error is answered with the records of the others. Only a client that has to go to
        another broker is told so at once.
        """
        for number, key in enumerate(keys, 1):
            if not number % PARTITIONS_PER_STEP:
                yield None
            try:
                self.led[key] = self._shares.get(self._group_id, key)
            except KafkaError as error:
                self.refuse(key, error)
                self._is_enough |= error.code in SAYS_WHO_LEADS
        self._is_enough |= not self.led
        metrics = self._shares.metrics
        for topic in {led.partition.topic_partition.topic for led in self.led.values()}:
            metrics.total_fetches[topic] += 1

    def run(self, *, is_final: bool) -> bool:
        """Acquire what is there; return whether there is something to answer at once.

        Nothing is acquired while there are too few bytes, unless it is final.
        """
        ready = [key for key, led in list(self.led.items()) if self._is_ready(key, led)]
        if (
            self._wanted.min_bytes > 1
            and not is_final
            and not self._is_enough
            and not self._has_min_bytes(ready)
        ):
            return self._is_enough
        left = self._wanted.demand.max_records
        for key in ready:
            if left <= 0:
                break
            left -= self._acquire(key, self._wanted.max_bytes // len(ready), left)
        return self._is_enough

    def _is_ready(self, key: PartitionKey, led: LedSharePartition) -> bool:
        if led.state is LedState.ENDED:
            assert led.refusal is not None, key
            self.refuse(key, led.refusal)
            self._is_enough = True
            return False
        led.follow_log_start()
        return led.has_records()

    def _end_of(self, partition: Partition) -> int:
        log = partition.log
        return log.last_stable_offset if self.reads_committed else log.high_watermark

    def _has_min_bytes(self, ready: Sequence[PartitionKey]) -> bool:
        left = self._wanted.min_bytes
        for key in ready:
            led = self.led[key]
            assert led.share is not None, key
            try:
                read = led.partition.log.read(
                    led.share.next_fetch_offset(),
                    max_bytes=self._wanted.max_bytes // len(ready),
                    max_offset=self._end_of(led.partition),
                )
            except (KafkaError, OSError):
                return True  # The error is answered at once.
            left -= read.size_bytes
            if left <= 0:
                return True
        return False

    # --- one partition ---

    def _acquire(self, key: PartitionKey, max_bytes: int, most: int) -> int:
        """Acquire records of one share-partition; return how many."""
        led, began = self.led[key], monotonic_seconds()
        try:
            acquired, records = self._read_on(led, max_bytes, most)
        except (KafkaError, CorruptBatch, OSError) as error:
            self.refuse(key, self._refusal_of(led, error))
            self._is_enough = True
            return 0
        led.figures.note_fetch(began, monotonic_seconds())
        if not acquired:
            return 0
        self._is_enough = True
        self.size_bytes += len(records)
        self.acquired_count += 1
        self.answers[key] = PartitionData(
            partition_index=key[1],
            records=records,
            acquired_records=[
                AcquiredRecords(first_offset=start, last_offset=end - 1, delivery_count=count)
                for start, end, count in acquired
            ],
        )
        return sum(end - start for start, end, _ in acquired)

    def _read_on(
        self, led: LedSharePartition, max_bytes: int, most: int
    ) -> tuple[list[Acquired], Chunk]:
        """Read until there is something to acquire, over aborted transactions and holes.

        After some reads without a record the member is answered, and asks again: it must not wait
        beside records, for nothing would wake it.
        """
        demand = self._wanted.demand._replace(max_records=most)
        assert led.share is not None, led.key
        for _ in range(READS_AT_ONCE):
            position = led.share.next_fetch_offset()
            found = self._read(led, max_bytes, most)
            acquired = led.acquire(demand, found.batches)
            if acquired:
                return acquired, found.records(acquired)
            if led.share.next_fetch_offset() == position or not led.has_records():
                return [], NO_RECORDS
        self._is_enough = True
        return [], NO_RECORDS

    def _refusal_of(
        self, led: LedSharePartition, error: KafkaError | CorruptBatch | OSError
    ) -> KafkaError:
        if isinstance(error, OSError):
            return self._shares.on_failure(led.partition, error)
        if isinstance(error, CorruptBatch):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error))
        return error

    def _read(self, led: LedSharePartition, max_bytes: int, most: int) -> LogSlice:
        share, log = led.share, led.partition.log
        assert share is not None, led.key
        parts, _, aborted = log.read(
            share.next_fetch_offset(),
            max_bytes=max_bytes,
            max_offset=self._end_of(led.partition),
            minimum_one_batch=self.size_bytes == 0,
            with_aborted_transactions=self.reads_committed,
        )
        if not parts:
            return NOTHING_READ
        return slice_of(parts[0], share.end_offset + most, aborted)

    def refuse(self, key: PartitionKey, error: KafkaError) -> None:
        """Answer a partition with an error, and read no more of it."""
        code = error.code if error.code in KNOWN_TO_CLIENTS else ErrorCode.UNKNOWN_SERVER_ERROR
        self.answers[key] = PartitionData(
            partition_index=key[1],
            error_code=code,
            error_message=error.message,
            records=NO_RECORDS,
        )
        led = self.led.pop(key, None)
        if led is not None:
            self._shares.metrics.failed_fetches[led.partition.topic_partition.topic] += 1
