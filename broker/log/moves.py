"""Moving a partition to another log directory of the same broker (AlterReplicaLogDirs, KIP-113).

A *future* log, in a directory named `<topic>-<partition>.<uuid>-future`, is filled from the current
log like a follower. When it has caught up it replaces the current log: the current directory is
renamed for deletion, and the future one gets its name. After a restart the move continues.
"""

from typing import NamedTuple

from broker.log.log_directory import LogDirectory
from broker.log.names import FUTURE_EXTENSION, directory_name
from broker.log.partition_log import PartitionLog
from broker.model import TopicPartition
from common.kafka.errors import ErrorCode, KafkaError


class MovedPiece(NamedTuple):
    """The result of one `advance_move`."""

    size_bytes: int
    log: PartitionLog | None = None
    """The new log when the move is complete; the old log must not be used after that."""


def begin_move(log: PartitionLog, target: LogDirectory, unique: bytes) -> PartitionLog:
    """Create the future log, empty; raise KAFKA_STORAGE_ERROR if the target is offline."""
    key = log.topic_partition
    if target.is_offline:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{target.path} is offline")
    future = target.future_logs.get(key)
    if future is None:
        name = directory_name(key, unique, FUTURE_EXTENSION)
        future = target.create(key, log.topic_id, log.config, 0, name)
        target.future_logs[key] = future
    return future


def advance_move(log: PartitionLog, future: PartitionLog, max_bytes: int) -> int:
    """Copy a piece of at most `max_bytes`; return its size in bytes."""
    _align(log, future)
    offset = future.log_end_offset
    found = log.read(offset, max_bytes=max_bytes, max_offset=log.log_end_offset, is_replica=True)
    for part in found.parts:
        future.append_as_follower(part if isinstance(part, bytes) else part.read())
    future.advance_high_watermark(log.high_watermark)
    return found.size_bytes


def _align(log: PartitionLog, future: PartitionLog) -> None:
    """Apply truncation and retention of the current log to the future one."""
    start = log.log_start_offset
    if future.log_end_offset < start or (not future.size_bytes and future.log_end_offset != start):
        future.truncate_fully_and_start_at(start)
        return
    epoch, end_offset = log.end_offset_for_epoch(future.leader_epoch)
    if epoch >= 0 and end_offset < future.log_end_offset:
        future.truncate_to(end_offset)
    elif future.log_end_offset > log.log_end_offset:
        future.truncate_to(log.log_end_offset)


def finish_move(
    key: TopicPartition, source: LogDirectory, target: LogDirectory, timestamp_ms: int
) -> PartitionLog:
    """Replace the current log by the future one, which has all its records."""
    log, future = source.logs[key], target.future_logs.pop(key)
    future.flush()
    future.delete_records_before(min(log.log_start_offset, future.high_watermark))
    future.high_watermark = log.high_watermark
    target.take_over(future)
    source.delete(key, timestamp_ms + log.config.file_delete_delay_ms)
    return future
