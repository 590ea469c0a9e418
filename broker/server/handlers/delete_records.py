"""DeleteRecords (key 21), versions 0-2: move the start of partitions (KIP-107)."""

from broker.errors import ErrorCode, KafkaError
from broker.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from broker.server.broker import Broker
from broker.server.network.dispatch import RequestContext

UP_TO_HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


def handle_delete_records(
    broker: Broker, context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse:
    """Delete up to each offset and answer the new log start offset."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(broker, topic.name, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _delete(
    broker: Broker, topic: str, wanted: DeleteRecordsPartition
) -> DeleteRecordsPartitionResult:
    try:
        log = broker.partitions.get(topic, wanted.partition_index).log
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
        code = broker.on_storage_failure(topic, wanted.partition_index, error).code
    else:
        return DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index, low_watermark=log.log_start_offset
        )
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index, low_watermark=NO_LOW_WATERMARK, error_code=code
    )
