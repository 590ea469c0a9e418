"""AlterReplicaLogDirs (key 34), versions 1-2: move partitions to another directory (KIP-113).

The answer says that the move has begun; DescribeLogDirs shows how far it is.
"""

from collections import defaultdict

from broker.errors import ErrorCode, KafkaError
from broker.model import TopicPartition
from broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from broker.server.broker import Broker
from broker.server.network.dispatch import RequestContext


def handle_alter_replica_log_dirs(
    broker: Broker, context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Begin each move for itself."""
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = defaultdict(list)
    for directory in request.dirs:
        for topic in directory.topics:
            for partition in topic.partitions:
                code = _move(broker, TopicPartition(topic.name, partition), directory.path)
                results[topic.name].append(
                    AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=code)
                )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in results.items()
        ]
    )


def _move(broker: Broker, topic_partition: TopicPartition, path: str) -> int:
    try:
        broker.mover.move(topic_partition, path)
    except KafkaError as error:
        return error.code
    except OSError as error:
        return broker.on_storage_failure(*topic_partition, error).code
    return ErrorCode.NONE
