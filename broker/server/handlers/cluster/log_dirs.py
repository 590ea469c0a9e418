"""The logs in each log directory (KIP-113).

DescribeLogDirs (key 35), versions 1-5 (KIP-827). AlterReplicaLogDirs (key 34), versions 1-2: move
partitions to another directory. The answer says that the move has begun; DescribeLogDirs shows how
far it is.
"""

import shutil
from collections import defaultdict
from functools import partial

from broker.log.log_directories import LogDirectories
from broker.log.log_directory import LogDirectory
from broker.log.partition_log import PartitionLog
from broker.model import TopicPartition
from broker.server.cluster.request_entries import merged
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import ITEMS_PER_STEP, Steps, each
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
from common.kafka.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

UNKNOWN_BYTES = -1


class DescribeLogDirs:
    """Describes the log directories."""

    def __init__(self, log_directories: LogDirectories) -> None:
        self._log_directories = log_directories

    def handle(self, context: RequestContext, request: DescribeLogDirsRequest) -> Steps[Answer]:
        """Describe every directory, with the partitions asked for; null asks for all."""
        wanted: set[TopicPartition] | None = None
        if request.topics is not None:
            wanted = {
                TopicPartition(topic.topic, number)
                for topic in request.topics
                for number in topic.partitions
            }
        results: list[DescribeLogDirsResult] = []
        for directory in list(self._log_directories.directories):
            result = yield from _describe(directory, wanted)
            results.append(result)
        return DescribeLogDirsResponse(results=results)


def _describe(
    directory: LogDirectory, wanted: set[TopicPartition] | None
) -> Steps[DescribeLogDirsResult]:
    if directory.is_offline:
        return DescribeLogDirsResult(
            log_dir=directory.path,
            error_code=ErrorCode.KAFKA_STORAGE_ERROR,
            total_bytes=UNKNOWN_BYTES,
            usable_bytes=UNKNOWN_BYTES,
        )
    by_topic: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for logs, is_future in ((directory.logs, False), (directory.future_logs, True)):
        for number, ((topic, partition), log) in enumerate(list(logs.items())):
            if not number % ITEMS_PER_STEP:
                yield None
            if wanted is None or (topic, partition) in wanted:
                lag = _lag(directory, log) if is_future else 0
                by_topic[topic].append(
                    DescribeLogDirsPartition(
                        partition_index=partition,
                        partition_size=log.size_bytes,
                        offset_lag=lag,
                        is_future_key=is_future,
                    )
                )
    space = shutil.disk_usage(directory.path)
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=[
            DescribeLogDirsTopic(name=name, partitions=partitions)
            for name, partitions in by_topic.items()
        ],
        total_bytes=space.total,
        usable_bytes=space.free,
    )


def _lag(directory: LogDirectory, future: PartitionLog) -> int:
    current = directory.logs.get(future.topic_partition)
    return 0 if current is None else current.log_end_offset - future.log_end_offset


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
