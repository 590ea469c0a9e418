"""AlterReplicaLogDirs (key 34), versions 1-2: move partitions to another directory (KIP-113).

The answer says that the move has begun; DescribeLogDirs shows how far it is.
"""

from functools import partial

from broker.model import TopicPartition
from broker.server.cluster.repeated import merged
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import Steps, each
from broker.server.replication.partitions import Partitions
from broker.server.storage.failures import StorageFailures
from broker.server.storage.mover import Mover
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


class AlterReplicaLogDirs:
    """Begins moves of this broker's replicas."""

    def __init__(self, partitions: Partitions, mover: Mover, failures: StorageFailures) -> None:
        self._partitions = partitions
        self._mover = mover
        self._failures = failures

    def handle(self, context: RequestContext, request: AlterReplicaLogDirsRequest) -> Steps[Answer]:
        """Begin each move separately."""
        results: list[AlterReplicaLogDirTopicResult] = []
        for directory in request.dirs:
            for topic in directory.topics:
                if topic.partitions:
                    move = partial(self._move_to, directory.path, topic.name)
                    partitions = yield from each(topic.partitions, move, per_step=1)
                    results.append(
                        AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=partitions)
                    )
        topics = merged(results, lambda topic: topic.topic_name, _merge)
        return AlterReplicaLogDirsResponse(results=topics)

    def _move_to(self, path: str, topic: str, partition: int) -> AlterReplicaLogDirPartitionResult:
        code = self._move(TopicPartition(topic, partition), path)
        return AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=code)

    def _move(self, topic_partition: TopicPartition, path: str) -> int:
        try:
            if self._partitions.find(*topic_partition) is None:
                self._partitions.get(*topic_partition)  # raises if there is no replica
            self._mover.move(topic_partition, path)
        except KafkaError as error:
            return error.code
        except OSError as error:
            return self._failures.on_failure(*topic_partition, error).code
        return ErrorCode.NONE


def _merge(first: AlterReplicaLogDirTopicResult, other: AlterReplicaLogDirTopicResult) -> None:
    first.partitions += other.partitions
