"""All log directories of a broker (`log.dirs`), and the directory of each partition.

The server opens this once at start, calls `get` and `create`, and runs the periodic work:
`checkpoint` every `log.flush.offset.checkpoint.interval.ms`, `delete_old_segments` every
`log.retention.check.interval.ms`, `remove_due` at `next_removal_ms`. Periodic work costs one
comparison per idle partition.

A partition moves to another log directory of the same broker (AlterReplicaLogDirs, KIP-113): a
*future* log, in a directory named `<topic>-<partition>.<uuid>-future`, is filled from the current
log like a follower. When it has caught up it replaces the current log: the current directory is
renamed for deletion, and the future one gets its name. After a restart the move continues.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from broker.log.checkpoints import write_partition_metadata
from broker.log.config import LogConfig
from broker.log.local_log import LocalLog
from broker.log.log_directory import DirectorySettings, LogDirectory
from broker.log.names import FUTURE_EXTENSION, directory_name
from broker.log.partition_log import PartitionLog
from broker.log.recovery import DamagedLog
from broker.log.storage import Storage
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


_logger = logging.getLogger(__name__)


class LogDirectories:
    """All partitions of this broker, in one or more directories."""

    def __init__(self, storage: Storage, paths: Sequence[str], settings: DirectorySettings) -> None:
        assert paths, "a broker has at least one log directory"
        self._storage = storage
        self._new_uuid = settings.new_uuid
        self.directories = [LogDirectory(storage, path, settings) for path in paths]
        self._by_partition: dict[TopicPartition, LogDirectory] = {}
        self.on_failure: Callable[[str, OSError], object] | None = None
        """Called with the path of a directory that fails in `checkpoint`; None: `take_offline`."""

    def change_producers(self, expiration_ms: int, *, verifies_transactions: bool) -> None:
        """Use other settings of producers, for the logs that there are and for new ones."""
        for directory in self.directories:
            directory.change_producers(expiration_ms, verifies_transactions)

    def open(
        self, timestamp_ms: int, on_progress: Callable[[int], None] = lambda size_bytes: None
    ) -> None:
        """Open every directory; one that fails goes offline.

        Raise OSError if all have failed, and InconsistentLogDirectory if a directory belongs to
        another node or is in use.
        """
        for directory in self.directories:
            try:
                directory.open(timestamp_ms, on_progress)
            except (OSError, DamagedLog) as error:
                directory.fail(str(error))
            for topic_partition in directory.logs:
                self._claim(topic_partition, directory)
        if all(directory.is_offline for directory in self.directories):
            raise OSError("every log directory has failed")

    def _claim(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        other = self._by_partition.setdefault(topic_partition, directory)
        if other is not directory:
            raise OSError(f"{topic_partition} is both in {other.path} and in {directory.path}")

    def get(self, topic_partition: TopicPartition) -> PartitionLog | None:
        """Return a partition's log, None if it is not here."""
        directory = self._by_partition.get(topic_partition)
        return directory.logs.get(topic_partition) if directory is not None else None

    def directory_of(self, topic_partition: TopicPartition) -> LogDirectory | None:
        """Return the directory of a partition, None if it is not here."""
        return self._by_partition.get(topic_partition)

    def all(self) -> Iterator[PartitionLog]:
        """Yield every log."""
        for directory in self.directories:
            yield from list(directory.logs.values())

    def create(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        timestamp_ms: int = 0,
        path: str | None = None,
    ) -> PartitionLog:
        """Return a partition's log; create it in `path` or in the directory with the fewest logs.

        The caller must first delete or set aside a log of another topic id: raise
        INCONSISTENT_TOPIC_ID. Raise KAFKA_STORAGE_ERROR for a refused partition, or without a
        directory, and LOG_DIR_NOT_FOUND for an unknown `path`.
        """
        log = self.get(topic_partition)
        if log is not None:
            return self._adopt(log, topic_id, config)
        refused = [
            x.refused[topic_partition] for x in self.directories if topic_partition in x.refused
        ]
        if refused:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, refused[0])
        directory = self._directory_for(path)
        log = directory.create(topic_partition, topic_id, config, timestamp_ms)
        directory.logs[topic_partition] = log
        self._by_partition[topic_partition] = directory
        return log

    def _adopt(self, log: PartitionLog, topic_id: bytes, config: LogConfig) -> PartitionLog:
        """Return an existing log, after writing the topic id that a crash may have lost."""
        if log.topic_id == bytes(16) and topic_id != log.topic_id:
            write_partition_metadata(self._storage, log.directory, topic_id)
            log.topic_id = topic_id
            log.has_new_directory = True
        if log.topic_id != topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{log.topic_partition} on disk has topic id {log.topic_id.hex()}",
            )
        log.update_config(config)
        return log

    def _directory_for(self, path: str | None) -> LogDirectory:
        usable = [
            directory
            for directory in self.directories
            if not directory.is_offline and path in (None, directory.path)
        ]
        if not usable:
            code = ErrorCode.LOG_DIR_NOT_FOUND if path else ErrorCode.KAFKA_STORAGE_ERROR
            raise KafkaError(code, f"No log directory to use: {path or 'all are offline'}")
        return min(usable, key=lambda directory: len(directory.logs))

    def delete(self, topic_partition: TopicPartition, timestamp_ms: int = 0) -> bool:
        """Remove a partition at once, and its files later; return False if it is not here."""
        directory = self._by_partition.get(topic_partition)
        if directory is None or topic_partition not in directory.logs:
            return False
        due_ms = timestamp_ms + directory.logs[topic_partition].config.file_delete_delay_ms
        directory.delete(topic_partition, due_ms)
        if topic_partition in directory.future_logs:
            directory.delete(topic_partition, due_ms, is_future=True)
        del self._by_partition[topic_partition]
        return True

    def set_aside(self, topic_partition: TopicPartition, reason: str) -> None:
        """Rename a partition to a stray, and serve no partition of this name."""
        self._by_partition.pop(topic_partition).set_aside(topic_partition, reason)

    def begin_beside_stray(self, topic_partition: TopicPartition) -> None:
        """Allow `create` despite a stray of the same name, for a replica that has a leader.

        The stray is kept.
        """
        for directory in self.directories:
            if topic_partition in directory.strays:
                directory.strays.discard(topic_partition)
                del directory.refused[topic_partition]

    def move(self, topic_partition: TopicPartition, path: str) -> bool:
        """Begin to move a partition to another directory; return False if it is already there.

        Call `advance_move` until it returns the new log. An earlier move of the partition is
        cancelled. Raise KafkaError with the codes of AlterReplicaLogDirs.
        """
        source = self._by_partition.get(topic_partition)
        target = next((x for x in self.directories if x.path == path), None)
        if target is None:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not one of log.dirs")
        if source is None:
            raise KafkaError(ErrorCode.REPLICA_NOT_AVAILABLE, f"{topic_partition} is not here")
        for directory in self.directories:
            if directory is not target and topic_partition in directory.future_logs:
                directory.delete(topic_partition, 0, is_future=True)
        if source is target:
            return False
        begin_move(source.logs[topic_partition], target, self._new_uuid())
        return True

    def moving(self) -> list[TopicPartition]:
        """Return the partitions that are being moved."""
        return [key for directory in self.directories for key in directory.future_logs]

    def advance_move(
        self, topic_partition: TopicPartition, max_bytes: int, timestamp_ms: int
    ) -> MovedPiece:
        """Copy a piece of a partition that is being moved; the last piece completes the move."""
        source = self._by_partition[topic_partition]
        target = next(x for x in self.directories if topic_partition in x.future_logs)
        log, future = source.logs[topic_partition], target.future_logs[topic_partition]
        size_bytes = advance_move(log, future, max_bytes)
        if future.log_end_offset < log.log_end_offset:
            return MovedPiece(size_bytes)
        future = finish_move(topic_partition, source, target, timestamp_ms)
        self._by_partition[topic_partition] = target
        return MovedPiece(size_bytes, future)

    def next_flush_ms(self) -> int | None:
        """Return the wall-clock time of the next flush, None if none is scheduled."""
        due = [x.flushes.next_due_ms() for x in self.directories if not x.is_offline]
        return min((time_ms for time_ms in due if time_ms is not None), default=None)

    def flushes_due(self, timestamp_ms: int) -> list[LocalLog]:
        """Remove and return the logs to flush; see `broker.log.flush` for the calls."""
        return [
            log
            for directory in self.directories
            if not directory.is_offline
            for log in directory.flushes.due(timestamp_ms)
        ]

    def checkpoint(self) -> None:
        """Write the offset checkpoints of every directory that is online."""
        self._each(LogDirectory.checkpoint)

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermarks of every directory that is online."""
        self._each(LogDirectory.checkpoint_high_watermarks)

    def delete_old_segments(self, timestamp_ms: int) -> int:
        """Apply retention to every partition; return the number of deleted segments."""
        return sum(log.delete_old_segments(timestamp_ms) for log in self.all())

    def expire_producers(self, timestamp_ms: int) -> int:
        """Remove expired producers (`producer.id.expiration.ms`); return their number."""
        return sum(log.producers.expire(timestamp_ms) for log in self.all())

    def next_removal_ms(self) -> int | None:
        """Return the wall-clock time of the next deletion of files, None if there is none."""
        due = [directory.deletion.next_due_ms() for directory in self.directories]
        return min((time_ms for time_ms in due if time_ms is not None), default=None)

    def remove_due(self, timestamp_ms: int, limit: int | None = None) -> int:
        """Delete the paths that are due, at most `limit` per directory; return their number."""
        return sum(
            directory.deletion.remove_due(timestamp_ms, limit)
            for directory in self.directories
            if not directory.is_offline
        )

    def take_offline(self, path: str, error: Exception) -> list[TopicPartition]:
        """Take a directory offline after an OSError; return its partitions."""
        lost: list[TopicPartition] = []
        for directory in self.directories:
            if directory.path == path and not directory.is_offline:
                lost += directory.fail(str(error))
        for topic_partition in lost:
            self._by_partition.pop(topic_partition, None)
        return lost

    @property
    def clean_broker_epoch(self) -> int:
        """The broker epoch of the last stop if it was clean in all directories (KIP-966)."""
        epochs = {-1 if each.is_offline else each.clean_broker_epoch for each in self.directories}
        return epochs.pop() if len(epochs) == 1 else -1

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Stop. A clean stop flushes all logs, so that the next start needs no recovery.

        The clean-shutdown file has the broker epoch. The broker's next registration names it, which
        shows the controller that the replicas here have lost no records (KIP-966).
        """
        self.on_failure = None
        if clean:
            self._each(lambda directory: directory.close(broker_epoch))
        for directory in self.directories:
            directory.release()

    def _each(self, act: Callable[[LogDirectory], None]) -> None:
        """Call `act` for every directory that is online, and `on_failure` for one that fails."""
        for directory in self.directories:
            if directory.is_offline:
                continue
            try:
                act(directory)
            except OSError as error:
                (self.on_failure or self.take_offline)(directory.path, error)
