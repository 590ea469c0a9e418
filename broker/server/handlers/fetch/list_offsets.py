"""ListOffsets (key 2), versions 0-11: the offset at a time, or a special one.

v1 answers one offset with its timestamp; v0 answers a list. v4 adds leader epochs (KIP-320), v7
max timestamp (KIP-734), v8 earliest local (KIP-405), v9 latest tiered (KIP-1005), v11 earliest
pending upload (KIP-1023).

OffsetForLeaderEpoch (key 23), versions 2-4: the end of an epoch in this log (KIP-101, KIP-320).
"""

from collections import Counter
from functools import partial

from broker.log.partition_log import PartitionLog
from broker.replication.divergence import validate_leader_epoch
from broker.server.cluster.request_entries import distinct, merged
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps, each
from broker.server.replication.partitions import Leader, Partitions
from broker.server.storage.failures import StorageFailures
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from common.kafka.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

Answered = ListOffsetsPartitionResponse

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -5, -6
FIRST_VERSION_OF = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
READ_COMMITTED = 1
NOTHING = (-1, -1, -1)


class ListOffsets:
    """Finds offsets in the logs led here."""

    def __init__(self, partitions: Partitions, failures: StorageFailures) -> None:
        self._partitions = partitions
        self._failures = failures

    def handle(self, context: RequestContext, request: ListOffsetsRequest) -> Steps[Answer]:
        """Answer each partition's offset, or its error.

        A partition that is named twice is refused and not looked up, as in Kafka.
        """
        topics: list[ListOffsetsTopicResponse] = []
        for topic in merged(request.topics, lambda topic: topic.name, _merge):
            counts = Counter(wanted.partition_index for wanted in topic.partitions)
            partitions: list[Answered] = []
            for wanted in distinct(topic.partitions, lambda one: one.partition_index):
                if counts[wanted.partition_index] > 1:
                    partitions.append(_refused(wanted, ErrorCode.INVALID_REQUEST))
                else:
                    partitions.append(self._answer(context, request, topic.name, wanted))
                yield None
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return ListOffsetsResponse(topics=topics)

    def _answer(
        self,
        context: RequestContext,
        request: ListOffsetsRequest,
        topic: str,
        wanted: ListOffsetsPartition,
    ) -> Answered:
        try:
            partition = self._partitions.get(topic, wanted.partition_index)
            leader = partition.leader
            assert leader is not None, topic
            validate_leader_epoch(wanted.current_leader_epoch, leader.leader_epoch)
            _validate_special_time(wanted.timestamp, context.api_version)
            if request.replica_id >= 0 and wanted.timestamp == LATEST:
                end = partition.log.log_end_offset
            else:
                end = _end_of(leader, wanted.timestamp, request.isolation_level)
            timestamp_ms, offset, leader_epoch = _find(partition.log, wanted.timestamp, end)
        except KafkaError as error:
            return _refused(wanted, error.code)
        except OSError as error:
            failure = self._failures.on_failure(topic, wanted.partition_index, error)
            return _refused(wanted, failure.code)
        if context.api_version == 0:
            return Answered(
                partition_index=wanted.partition_index,
                old_style_offsets=[offset] if offset >= 0 else [],
            )
        return Answered(
            partition_index=wanted.partition_index,
            timestamp=timestamp_ms,
            offset=offset,
            leader_epoch=leader_epoch,
        )


def _merge(first: ListOffsetsTopic, other: ListOffsetsTopic) -> None:
    first.partitions += other.partitions


def _refused(wanted: ListOffsetsPartition, code: ErrorCode) -> Answered:
    return Answered(partition_index=wanted.partition_index, error_code=code)


def _validate_special_time(timestamp_ms: int, api_version: int) -> None:
    """Refuse a special number that the client's version does not have."""
    if timestamp_ms < 0 and FIRST_VERSION_OF.get(timestamp_ms, api_version + 1) > api_version:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"Version {api_version} has no time {timestamp_ms}"
        )


def _end_of(leader: Leader, timestamp_ms: int, isolation_level: int) -> int:
    """Return the end of the offsets visible to a consumer; raises OFFSET_NOT_AVAILABLE.

    A new leader that does not know the high watermark yet still knows the start of the log.
    """
    if timestamp_ms in {EARLIEST, EARLIEST_LOCAL}:
        return leader.log.high_watermark
    return leader.latest_offset(is_read_committed=isolation_level == READ_COMMITTED)


def _find(log: PartitionLog, timestamp_ms: int, end_offset: int) -> tuple[int, int, int]:
    """Return (timestamp, offset, leader epoch) for a time or one of the special numbers."""
    if timestamp_ms == LATEST:
        return -1, end_offset, log.leader_epoch
    if timestamp_ms in {EARLIEST, EARLIEST_LOCAL}:
        return -1, log.log_start_offset, log.leader_epoch
    if timestamp_ms in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
        return NOTHING  # there is no tiered storage
    is_max = timestamp_ms == MAX_TIMESTAMP
    found = log.max_timestamp() if is_max else log.offset_for_timestamp(timestamp_ms)
    return NOTHING if found is None or found[1] >= end_offset else found


class OffsetForLeaderEpoch:
    """Finds the ends of epochs in the logs led here."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def handle(
        self, context: RequestContext, request: OffsetForLeaderEpochRequest
    ) -> Steps[Answer]:
        """Answer each partition's end offset for an epoch, or its error."""
        topics: list[OffsetForLeaderTopicResult] = []
        for topic in request.topics:
            answer = partial(self._answer, topic.topic)
            partitions = yield from each(topic.partitions, answer)
            yield None
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
        return OffsetForLeaderEpochResponse(topics=topics)

    def _answer(self, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
        try:
            partition = self._partitions.get(topic, wanted.partition)
            assert partition.leader is not None, topic
            validate_leader_epoch(wanted.current_leader_epoch, partition.leader.leader_epoch)
        except KafkaError as error:
            return EpochEndOffset(partition=wanted.partition, error_code=error.code)
        leader_epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
        return EpochEndOffset(
            partition=wanted.partition, leader_epoch=leader_epoch, end_offset=end_offset
        )
