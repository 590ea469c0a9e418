"""DeleteRecords (key 21), versions 0-2: move the start of partitions (KIP-107)."""

from functools import partial

from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from broker.server.network.dispatch import AnswerWalk, RequestContext
from broker.server.network.walks import each
from broker.server.replication.partitions import Partitions
from broker.server.storage.failures import StorageFailures

UP_TO_HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


class DeleteRecords:
    """Moves the start of logs led here."""

    def __init__(self, partitions: Partitions, failures: StorageFailures) -> None:
        self._partitions = partitions
        self._failures = failures

    def handle(self, context: RequestContext, request: DeleteRecordsRequest) -> AnswerWalk:
        """Delete up to each offset and answer the new log start offset.

        What is said last of a partition counts, as in Kafka.
        """
        by_topic: dict[str, dict[int, DeleteRecordsPartition]] = {}
        for topic in request.topics:
            of_topic = by_topic.setdefault(topic.name, {})
            of_topic.update((wanted.partition_index, wanted) for wanted in topic.partitions)
            yield
        topics: list[DeleteRecordsTopicResult] = []
        for name, of_topic in by_topic.items():
            partitions = yield from each(of_topic.values(), partial(self._delete, name), per_step=1)
            topics.append(DeleteRecordsTopicResult(name=name, partitions=partitions))
        return DeleteRecordsResponse(topics=topics)

    def _delete(self, topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        try:
            log = self._partitions.get(topic, wanted.partition_index).log
            if log.config.is_compacted and not log.config.is_deleted:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION,
                    f"Records of {topic} are not deleted: its cleanup.policy is compact",
                )
            offset = log.high_watermark if wanted.offset == UP_TO_HIGH_WATERMARK else wanted.offset
            log.delete_records_before(offset)
        except KafkaError as error:
            code = error.code
        except OSError as error:
            code = self._failures.on_failure(topic, wanted.partition_index, error).code
        else:
            return DeleteRecordsPartitionResult(
                partition_index=wanted.partition_index, low_watermark=log.log_start_offset
            )
        return DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index, low_watermark=NO_LOW_WATERMARK, error_code=code
        )
