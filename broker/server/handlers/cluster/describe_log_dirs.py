"""DescribeLogDirs (key 35), versions 1-5: the logs in each log directory (KIP-113, KIP-827)."""

import shutil
from collections import defaultdict

from broker.log.log_directories import LogDirectories
from broker.log.log_directory import LogDirectory
from broker.log.partition_log import PartitionLog
from broker.model import TopicPartition
from broker.server.network.dispatch import Answer, RequestContext
from broker.server.network.later import ITEMS_PER_STEP, Steps
from common.kafka.errors import ErrorCode
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
