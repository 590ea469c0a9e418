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
from broker.server.network.dispatch import RequestContext
from broker.server.replication.partitions import Partitions
from broker.server.storage.failures import StorageFailures
from broker.server.storage.mover import Mover


class AlterReplicaLogDirs:
    """Begins moves of replicas that are here."""

    def __init__(self, partitions: Partitions, mover: Mover, failures: StorageFailures) -> None:
        self._partitions = partitions
        self._mover = mover
        self._failures = failures

    def handle(
        self, context: RequestContext, request: AlterReplicaLogDirsRequest
    ) -> AlterReplicaLogDirsResponse:
        """Begin each move for itself."""
        results: dict[str, list[AlterReplicaLogDirPartitionResult]] = defaultdict(list)
        for directory in request.dirs:
            for topic in directory.topics:
                for partition in topic.partitions:
                    code = self._move(TopicPartition(topic.name, partition), directory.path)
                    results[topic.name].append(
                        AlterReplicaLogDirPartitionResult(
                            partition_index=partition, error_code=code
                        )
                    )
        return AlterReplicaLogDirsResponse(
            results=[
                AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
                for name, partitions in results.items()
            ]
        )

    def _move(self, topic_partition: TopicPartition, path: str) -> int:
        try:
            if self._partitions.find(*topic_partition) is None:
                self._partitions.get(*topic_partition)  # raises why it is not here
            self._mover.move(topic_partition, path)
        except KafkaError as error:
            return error.code
        except OSError as error:
            return self._failures.on_failure(*topic_partition, error).code
        return ErrorCode.NONE
