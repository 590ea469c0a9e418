"""DeleteRecords (key 21), versions 0-2: move the start of partitions (KIP-107).

The answer is sent when every live replica has deleted the records too, with the low watermark: the
smallest log start of all replicas. After a time-out the answer is REQUEST_TIMED_OUT, although the
replicas still delete the records.
"""

from functools import partial
from typing import NamedTuple

from broker.server.cluster.request_entries import merged
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Later, Steps, each
from broker.server.replication.parked_writes import ParkedWrites
from broker.server.replication.partitions import Partition, Partitions
from broker.server.storage.failures import StorageFailures
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)

UP_TO_HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


class _Deletion(NamedTuple):
    """A deletion that was done here, and that waits for the other replicas."""

    partition: Partition
    offset: int
    result: DeleteRecordsPartitionResult


class DeleteRecords:
    """Moves the start of logs led here."""

    def __init__(
        self, partitions: Partitions, failures: StorageFailures, parked_deletions: ParkedWrites
    ) -> None:
        self._partitions = partitions
        self._failures = failures
        self._parked_deletions = parked_deletions

    def handle(self, context: RequestContext, request: DeleteRecordsRequest) -> Steps[Answer]:
        """Delete up to each offset, and answer when all replicas have done so.

        The last entry of a partition counts, as in Kafka.
        """
        deletions: list[_Deletion] = []
        topics: list[DeleteRecordsTopicResult] = []
        for topic in merged(request.topics, lambda topic: topic.name, _merge):
            wanted = merged(topic.partitions, lambda one: one.partition_index, _replace)
            delete = partial(self._delete, topic.name, deletions)
            partitions = yield from each(wanted, delete, per_step=1)
            topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
        yield self._deleted_everywhere(deletions, request.timeout_ms)
        _tell_low_watermarks(deletions)
        return DeleteRecordsResponse(topics=topics)

    def _delete(
        self, topic: str, deletions: list[_Deletion], wanted: DeleteRecordsPartition
    ) -> DeleteRecordsPartitionResult:
        index = wanted.partition_index
        try:
            partition = self._partitions.get(topic, index)
            log = partition.log
            if log.config.is_compacted and not log.config.is_deleted:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION,
                    f"Records of {topic} are not deleted: its cleanup.policy is compact",
                )
            offset = log.high_watermark if wanted.offset == UP_TO_HIGH_WATERMARK else wanted.offset
            self._partitions.delete_records_before(partition, offset)
        except KafkaError as error:
            return _refused(index, error.code)
        except OSError as error:
            return _refused(index, self._failures.on_failure(topic, index, error).code)
        result = DeleteRecordsPartitionResult(partition_index=index)
        deletions.append(_Deletion(partition, offset, result))
        return result

    def _deleted_everywhere(self, deletions: list[_Deletion], timeout_ms: int) -> Later:
        """Return a Later that is done when every replica has deleted, or the time is over."""
        write = self._parked_deletions.begin()
        for partition, offset, result in deletions:
            leader = partition.leader
            if leader is None:  # It was lost while others were deleted.
                result.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            elif leader.low_watermark() < offset:
                write.wait_for(leader.deletions, offset, result)
        return write.until_decided(timeout_ms)


def _merge(first: DeleteRecordsTopic, other: DeleteRecordsTopic) -> None:
    first.partitions += other.partitions


def _replace(first: DeleteRecordsPartition, other: DeleteRecordsPartition) -> None:
    first.offset = other.offset


def _tell_low_watermarks(deletions: list[_Deletion]) -> None:
    """Set the low watermarks; without the leadership, the requested offset stands for it."""
    for partition, offset, result in deletions:
        if partition.leader is not None:
            result.low_watermark = partition.leader.low_watermark()
        else:
            result.low_watermark = NO_LOW_WATERMARK if result.error_code else offset


def _refused(index: int, error_code: int) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=error_code
    )
