"""One directory of `log.dirs`: its partitions, its checkpoints, its lock, and its failure.

A directory that fails (an `OSError`, or a damaged log) goes offline as a whole: its partitions are
not served until the disk is repaired and the broker is started again. The other directories are
still served.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from broker.log import checkpoints
from broker.log.checkpoints import (
    CHECKPOINTS,
    CLEAN_SHUTDOWN,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    encode_uuid,
    read_offsets,
    write_offsets,
    write_properties,
)
from broker.log.config import LogConfig
from broker.log.flush import FlushQueue
from broker.log.local_log import LocalLog, LogPlace
from broker.log.log_start import OpenHints
from broker.log.meta_properties import (
    VERSION,
    InconsistentLogDirectory,
    read_meta_properties,
    require_owner,
)
from broker.log.names import (
    DELETE_EXTENSION,
    FUTURE_EXTENSION,
    STRAY_EXTENSION,
    directory_name,
    parse_directory_name,
)
from broker.log.partition_log import PartitionLog
from broker.log.producers.state import DEFAULT_EXPIRATION_MS
from broker.log.recovery import DamagedLog, open_partition_log
from broker.log.storage import DelayedDeletion, Storage, remove_tree, replace_file
from broker.model import TopicPartition
from broker.records.errors import CorruptBatch
from broker.records.validation import BatchValidator

LOCK_FILE = ".lock"
MANY_LOGS = 8
"""Above this number of unsynced logs, a clean stop syncs the whole file system at once."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DirectorySettings:
    """The identity of the broker, and the settings of its topics."""

    cluster_id: str
    node_id: int
    config_for: Callable[[str], LogConfig]
    """Returns the settings of a topic by name."""
    new_uuid: Callable[[], bytes]
    """Returns 16 random bytes."""
    producer_expiration_ms: int = DEFAULT_EXPIRATION_MS
    verifies_transactions: bool = False


def _what_to_do_with_stray(path: str) -> str:
    return (
        f"{path} had this partition's name and is not what the cluster's metadata means by it: "
        "move it out of the log directory to begin with an empty partition, or give it back its "
        f"name and remove its {PARTITION_METADATA} to serve what it has, and start again"
    )


class LogDirectory:
    """Invariant: while `is_offline`, `logs` is empty and nothing accesses the disk."""

    def __init__(self, storage: Storage, path: str, settings: DirectorySettings) -> None:
        self._storage = storage
        self._settings = settings
        self._lock: object = None
        self._written: dict[str, dict[TopicPartition, int]] = {}
        self.path = path
        self.directory_id = bytes(16)
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.future_logs: dict[TopicPartition, PartitionLog] = {}
        self.deletion = DelayedDeletion(storage)
        self.flushes: FlushQueue[LocalLog] = FlushQueue()
        self._validator = BatchValidator()
        self.refused: dict[TopicPartition, str] = {}
        """The partitions here that are not served, with instructions for the operator."""
        self.strays: set[TopicPartition] = set()
        """The refused partitions that were renamed, so that a new log would not overwrite them."""
        self.failure: str | None = None
        self.was_clean = False
        self.clean_broker_epoch = -1

    @property
    def is_offline(self) -> bool:
        """True if the directory has failed."""
        return self.failure is not None

    @property
    def place(self) -> LogPlace:
        """The state that the logs of this directory share."""
        return LogPlace(
            self._storage,
            self.deletion,
            self.checkpoint_recovery_points,
            self._settings.producer_expiration_ms,
            self._settings.verifies_transactions,
            self.flushes,
            self._validator,
        )

    def change_producers(self, expiration_ms: int, verifies_transactions: bool) -> None:
        """Use other settings of producers, for the logs that there are and for new ones."""
        self._settings = replace(
            self._settings,
            producer_expiration_ms=expiration_ms,
            verifies_transactions=verifies_transactions,
        )
        for log in (*self.logs.values(), *self.future_logs.values()):
            log.producers.expiration_ms = expiration_ms
            log.producers.requires_verification = verifies_transactions

    def open(self, timestamp_ms: int, on_progress: Callable[[int], None]) -> None:
        """Lock the directory, open every partition in it, and recover where necessary.

        Raise InconsistentLogDirectory, DamagedLog or OSError.
        """
        self._storage.make_directory(self.path)
        try:
            lock = self._storage.open(f"{self.path}/{LOCK_FILE}", create=True)
            lock.lock()
            self._lock = lock
        except BlockingIOError as error:
            raise InconsistentLogDirectory(
                f"{self.path} is used by another process (its {LOCK_FILE} is taken)"
            ) from error
        self._check_owner()
        hints = self._read_clean_shutdown(timestamp_ms)
        hints = replace(hints, on_progress=on_progress)
        self._written = {
            name: read_offsets(self._storage, f"{self.path}/{name}") for name in CHECKPOINTS
        }
        for name in self._storage.names(self.path):
            self._open_entry(name, hints)

    def _check_owner(self) -> None:
        """Compare `meta.properties` with this node's ids; write the file at the first start."""
        properties = read_meta_properties(self._storage, self.path)
        expected = {
            "cluster.id": self._settings.cluster_id,
            "node.id": str(self._settings.node_id),
        }
        require_owner(self.path, properties, expected)
        if "directory.id" in properties:
            self.directory_id = checkpoints.decode_uuid(properties["directory.id"])
            return
        self.directory_id = self._settings.new_uuid()
        written = properties | expected | {"version": VERSION}
        written["directory.id"] = encode_uuid(self.directory_id)
        write_properties(self._storage, f"{self.path}/{META_PROPERTIES}", written)

    def _read_clean_shutdown(self, timestamp_ms: int) -> OpenHints:
        """Read and remove the clean-shutdown file."""
        path = f"{self.path}/{CLEAN_SHUTDOWN}"
        broker_epoch = checkpoints.read_clean_shutdown(self._storage, path)
        self.was_clean = broker_epoch is not None
        if broker_epoch is not None:
            self.clean_broker_epoch = broker_epoch
        if self._storage.status(path) is not None:
            self._storage.remove(path)
            self._storage.sync_directory(self.path)
        return OpenHints(is_clean=self.was_clean, timestamp_ms=timestamp_ms)

    def _open_entry(self, name: str, hints: OpenHints) -> None:
        path = f"{self.path}/{name}"
        parsed, status = parse_directory_name(name), self._storage.status(path)
        if parsed is None or status is None or not status.is_directory:
            return
        topic_partition, extension = parsed
        if extension == DELETE_EXTENSION:
            remove_tree(self._storage, path)
        elif extension == STRAY_EXTENSION:
            self.refused[topic_partition] = _what_to_do_with_stray(path)
            self.strays.add(topic_partition)
            _logger.warning("stray partition kept directory=%s", path)
        else:
            logs = self.future_logs if extension == FUTURE_EXTENSION else self.logs
            log = self._open_log(topic_partition, path, hints)
            if log is not None:
                logs[topic_partition] = log

    def _open_log(
        self, topic_partition: TopicPartition, path: str, hints: OpenHints
    ) -> PartitionLog | None:
        """Open a log; return None if it must not be served; raise DamagedLog."""
        written = self._written
        hints = replace(
            hints,
            recovery_point=written[RECOVERY_POINT_CHECKPOINT].get(topic_partition, 0),
            log_start_offset=written[LOG_START_CHECKPOINT].get(topic_partition, 0),
            high_watermark=written[HIGH_WATERMARK_CHECKPOINT].get(topic_partition, 0),
        )
        try:
            topic_id = checkpoints.read_partition_metadata(self._storage, path)
        except ValueError as error:
            if hints.recovery_point:
                self._refuse_unknown(topic_partition, path, error)
                return None
            # The first flush syncs the file, and the log was never flushed before the power
            # failure.
            _logger.warning("%s/%s ignored: %s", path, PARTITION_METADATA, error)
            topic_id = None
        config = self._settings.config_for(topic_partition.topic)
        try:
            log = open_partition_log(topic_partition, path, config, self.place, hints)
        except CorruptBatch as error:
            raise DamagedLog(f"{path} cannot be read: {error}") from error
        log.first_dirty_offset = written[CLEANER_CHECKPOINT].get(topic_partition, 0)
        log.topic_id = topic_id or bytes(16)
        # The log was never flushed, so its name and its topic id may not be on disk.
        log.has_new_directory |= not hints.recovery_point
        return log

    def _refuse_unknown(
        self, topic_partition: TopicPartition, path: str, error: ValueError
    ) -> None:
        """Refuse a partition whose topic id cannot be read."""
        self.refused[topic_partition] = (
            f"{path}/{PARTITION_METADATA} is damaged ({error}): restore it, or remove that file if "
            "the partition is the topic's, and start again"
        )
        _logger.error("partition is not served: %s", self.refused[topic_partition])

    def set_aside(self, topic_partition: TopicPartition, reason: str) -> None:
        """Rename a partition to a stray, because it may be the only copy; it is not served."""
        log = self.logs.pop(topic_partition)
        log.close()
        log.is_deleted = True
        name = directory_name(topic_partition, log.topic_id, STRAY_EXTENSION)
        path = f"{self.path}/{name}"
        self._storage.rename(log.directory, path)
        self._storage.sync_directory(self.path)
        log.move_to(path)
        self.refused[topic_partition] = _what_to_do_with_stray(path)
        self.strays.add(topic_partition)
        _logger.warning(
            "stray partition set aside directory=%s log_end_offset=%d reason=%s: %s",
            log.directory,
            log.log_end_offset,
            reason,
            self.refused[topic_partition],
        )

    def create(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        timestamp_ms: int,
        name: str = "",
    ) -> PartitionLog:
        """Create an empty partition; its first segment file is created with the first record."""
        path = f"{self.path}/{name or directory_name(topic_partition)}"
        self._storage.make_directory(path)
        checkpoints.write_partition_metadata(self._storage, path, topic_id)
        log = PartitionLog(topic_partition, path, config, self.place)
        log.topic_id = topic_id
        log.add_segment(0, timestamp_ms)
        log.has_new_directory = True
        self._forget_checkpoints(topic_partition)
        return log

    def _forget_checkpoints(self, topic_partition: TopicPartition) -> None:
        """Write the checkpoints if they still have an earlier partition of this name.

        After a crash its offsets would be taken for those of the new partition.
        """
        if any(topic_partition in offsets for offsets in self._written.values()):
            self.checkpoint()

    def delete(
        self, topic_partition: TopicPartition, due_ms: int, *, is_future: bool = False
    ) -> None:
        """Remove a partition at once, and its files at `due_ms`."""
        log = (self.future_logs if is_future else self.logs).pop(topic_partition)
        name = directory_name(topic_partition, log.topic_id, DELETE_EXTENSION)
        log.is_deleted = True
        doomed = f"{self.path}/{name}"
        remove_tree(self._storage, doomed)
        self._storage.rename(log.directory, doomed)
        log.move_to(doomed)
        self.deletion.schedule(doomed, due_ms)

    def take_over(self, future: PartitionLog) -> None:
        """Make a future log of this directory the partition's log."""
        path = f"{self.path}/{directory_name(future.topic_partition)}"
        self._storage.rename(future.directory, path)
        future.move_to(path)
        future.has_new_directory = True
        self.logs[future.topic_partition] = future
        self._forget_checkpoints(future.topic_partition)

    def checkpoint(self) -> None:
        """Write the offset checkpoints that have changed."""
        logs = self.logs.items()
        self.checkpoint_recovery_points()
        self.checkpoint_high_watermarks()
        # As in Kafka, only starts that differ from the first segment's base offset.
        moved = [log for _, log in logs if log.log_start_offset > log.segments.first.base_offset]
        starts = {log.topic_partition: log.log_start_offset for log in moved}
        if starts != self._written.get(LOG_START_CHECKPOINT):
            for log in moved:
                # The epochs come first, so that they never start before the start on disk.
                log.save_names()
        self._write(LOG_START_CHECKPOINT, starts)
        cleaned = {key: log.first_dirty_offset for key, log in logs if log.first_dirty_offset}
        self._write(CLEANER_CHECKPOINT, cleaned)

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermark of each log."""
        offsets = {key: log.high_watermark for key, log in self.logs.items()}
        self._write(HIGH_WATERMARK_CHECKPOINT, offsets)

    def checkpoint_recovery_points(self) -> None:
        """Write the recovery point of each log."""
        points = {key: log.recovery_point for key, log in self.logs.items()}
        self._write(RECOVERY_POINT_CHECKPOINT, points)

    def _write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        # Keep the entries of refused partitions, which may be repaired and served later.
        kept = self._written.get(name, {})
        offsets |= {key: kept[key] for key in self.refused if key in kept and key not in offsets}
        if offsets != self._written.get(name):
            write_offsets(self._storage, f"{self.path}/{name}", offsets)
            self._written[name] = offsets

    def close(self, broker_epoch: int) -> None:
        """Stop cleanly: flush all logs, write the checkpoints and the clean-shutdown file."""
        logs = [*self.logs.values(), *self.future_logs.values()]
        dirty = [log for log in logs if log.prepare_close()]
        if len(dirty) > MANY_LOGS:
            for log in dirty:
                log.epochs.save(is_durable=False)
            self._storage.sync_all(self.path)
            for log in dirty:
                log.note_all_synced()
        for log in dirty:
            log.flush()
        self.checkpoint()
        mark = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'
        replace_file(self._storage, f"{self.path}/{CLEAN_SHUTDOWN}", mark.encode())
        self.release()

    def release(self) -> None:
        """Release the lock."""
        self._lock = None

    def fail(self, reason: str) -> list[TopicPartition]:
        """Go offline; return the partitions that were served."""
        lost = list(self.logs)
        self.failure = reason
        self.logs, self.future_logs = {}, {}
        self._lock = None
        _logger.error("log directory offline path=%s reason=%s", self.path, reason)
        return lost
