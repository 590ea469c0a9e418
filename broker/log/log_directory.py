"""One directory of `log.dirs`: its partitions, its checkpoints, its lock, and its failure.

A directory that fails (an `OSError`, or a damaged log) goes offline whole: its partitions are
gone from this broker until the disk is mended and the broker started again. The others serve on.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from broker.log import checkpoints
from broker.log.checkpoints import (
    CLEAN_SHUTDOWN,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    encode_uuid,
    read_offsets,
    read_properties,
    write_offsets,
    write_properties,
)
from broker.log.config import LogConfig
from broker.log.deletion import DelayedDeletion
from broker.log.flush import FlushQueue
from broker.log.local_log import LocalLog, LogPlace
from broker.log.partition_log import PartitionLog
from broker.log.producers.state import DEFAULT_EXPIRATION_MS
from broker.log.recovery import OpenHints, open_partition_log
from broker.log.storage import Storage, read_file, remove_tree, replace_file
from broker.model import TopicPartition
from broker.records.validation import BatchValidator

DELETE_EXTENSION = "-delete"
FUTURE_EXTENSION = "-future"
CHECKPOINTS = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_CHECKPOINT,
)
LOCK_FILE = ".lock"
MAX_NAME_BYTES = 255
MANY_LOGS = 8
"""From so many dirty logs on, a clean stop syncs the file system, not file after file."""

_logger = logging.getLogger(__name__)


class InconsistentLogDirectory(Exception):  # noqa: N818 - names a state, like DamagedLog
    """A directory that belongs to another node or cluster, or that another process uses."""


@dataclass(frozen=True, slots=True)
class DirectorySettings:
    """Who the broker is, and what its topics' settings are."""

    cluster_id: str
    node_id: int
    config_for: Callable[[str], LogConfig]
    """Gives the settings of a topic by name."""
    new_uuid: Callable[[], bytes]
    """Gives 16 fresh bytes: randomness is an argument."""
    producer_expiration_ms: int = DEFAULT_EXPIRATION_MS


def directory_name(
    topic_partition: TopicPartition, unique: bytes = b"", extension: str = ""
) -> str:
    """Give `topic-0`, or `topic-0.<32 hex digits>-delete`, cut to what a file name may have."""
    suffix = f".{unique.hex()}{extension}" if extension else ""
    number = f"-{topic_partition.partition}"
    room = MAX_NAME_BYTES - len(suffix) - len(number)
    return f"{topic_partition.topic[:room]}{number}{suffix}"


def parse_directory_name(name: str) -> TopicPartition | None:
    """Read `topic-0`; None for a name that is no partition's."""
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not number.isdigit() or name.startswith("."):
        return None
    return TopicPartition(topic, int(number))


class LogDirectory:
    """Invariant: when `is_offline`, `logs` is empty and nothing touches the disk any more."""

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
        self.failure: str | None = None
        self.was_clean = False
        self.clean_broker_epoch = -1

    @property
    def is_offline(self) -> bool:
        """Whether the directory has failed."""
        return self.failure is not None

    @property
    def place(self) -> LogPlace:
        """What the logs in here share."""
        return LogPlace(
            self._storage,
            self.deletion,
            self.checkpoint_recovery_points,
            self._settings.producer_expiration_ms,
            self.flushes,
            self._validator,
        )

    def open(self, timestamp_ms: int, on_progress: Callable[[int], None]) -> None:
        """Lock the directory and open every partition in it, recovering what needs it."""
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
        """Compare `meta.properties` with who we are, and write it the first time."""
        path = f"{self.path}/{META_PROPERTIES}"
        properties = read_properties(self._storage, path)
        expected = {
            "cluster.id": self._settings.cluster_id,
            "node.id": str(self._settings.node_id),
        }
        for name, value in expected.items():
            if properties.get(name, value) != value:
                raise InconsistentLogDirectory(
                    f"{path} says {name}={properties[name]} and this node has {value}"
                )
        if "directory.id" in properties and "version" in properties:
            self.directory_id = checkpoints.decode_uuid(properties["directory.id"])
            return
        self.directory_id = self._settings.new_uuid()
        written = properties | expected | {"version": "1"}
        written["directory.id"] = encode_uuid(self.directory_id)
        write_properties(self._storage, path, written)

    def _read_clean_shutdown(self, timestamp_ms: int) -> OpenHints:
        """See whether the last stop was clean; the mark goes, for this run has just begun."""
        path = f"{self.path}/{CLEAN_SHUTDOWN}"
        data = read_file(self._storage, path)
        self.was_clean = data is not None
        if data is not None:
            digits = "".join(filter(lambda x: x in "-0123456789", data.decode().rpartition(":")[2]))
            self.clean_broker_epoch = int(digits or "-1")
            self._storage.remove(path)
            self._storage.sync_directory(self.path)
        return OpenHints(is_clean=self.was_clean, timestamp_ms=timestamp_ms)

    def _open_entry(self, name: str, hints: OpenHints) -> None:
        path = f"{self.path}/{name}"
        if name.endswith(DELETE_EXTENSION):
            remove_tree(self._storage, path)
            return
        if name.endswith(FUTURE_EXTENSION):
            topic_partition = parse_directory_name(name.rpartition(".")[0])
            logs = self.future_logs
        else:
            topic_partition, logs = parse_directory_name(name), self.logs
        status = self._storage.status(path)
        if topic_partition is None or status is None or not status.is_directory:
            return
        log = self._open_log(topic_partition, path, hints)
        logs[topic_partition] = log

    def _open_log(
        self, topic_partition: TopicPartition, path: str, hints: OpenHints
    ) -> PartitionLog:
        written = self._written
        hints = replace(
            hints,
            recovery_point=written[RECOVERY_POINT_CHECKPOINT].get(topic_partition, 0),
            log_start_offset=written[LOG_START_CHECKPOINT].get(topic_partition, 0),
            high_watermark=written[HIGH_WATERMARK_CHECKPOINT].get(topic_partition, 0),
        )
        config = self._settings.config_for(topic_partition.topic)
        log = open_partition_log(topic_partition, path, config, self.place, hints)
        log.first_dirty_offset = written[CLEANER_CHECKPOINT].get(topic_partition, 0)
        log.topic_id = checkpoints.read_partition_metadata(self._storage, path) or bytes(16)
        return log

    def create(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        config: LogConfig,
        timestamp_ms: int,
        name: str = "",
    ) -> PartitionLog:
        """Make an empty partition; its first segment appears with the first record."""
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
        """Write the checkpoints now if they speak of a former partition of this name.

        After a crash they would be taken for the new one's, which has other offsets.
        """
        if any(topic_partition in offsets for offsets in self._written.values()):
            self.checkpoint()

    def delete(
        self, topic_partition: TopicPartition, due_ms: int, *, is_future: bool = False
    ) -> None:
        """Take a partition away at once, and its files later."""
        log = (self.future_logs if is_future else self.logs).pop(topic_partition)
        name = directory_name(topic_partition, log.topic_id, DELETE_EXTENSION)
        log.is_deleted = True
        doomed = f"{self.path}/{name}"
        remove_tree(self._storage, doomed)
        self._storage.rename(log.directory, doomed)
        log.move_to(doomed)
        self.deletion.schedule(doomed, due_ms)

    def take_over(self, future: PartitionLog) -> None:
        """Let a future log of this directory be the partition's log from now on."""
        path = f"{self.path}/{directory_name(future.topic_partition)}"
        self._storage.rename(future.directory, path)
        future.move_to(path)
        future.has_new_directory = True
        self.logs[future.topic_partition] = future
        self._forget_checkpoints(future.topic_partition)

    def checkpoint(self) -> None:
        """Write the offset checkpoints, each if anything in it changed."""
        logs = self.logs.items()
        self.checkpoint_recovery_points()
        self._write(HIGH_WATERMARK_CHECKPOINT, {key: log.high_watermark for key, log in logs})
        # As Kafka: only the starts that the first segment's name does not tell.
        starts = {
            key: log.log_start_offset
            for key, log in logs
            if log.log_start_offset > log.segments.first.base_offset
        }
        self._write(LOG_START_CHECKPOINT, starts)
        cleaned = {key: log.first_dirty_offset for key, log in logs if log.first_dirty_offset}
        self._write(CLEANER_CHECKPOINT, cleaned)

    def checkpoint_recovery_points(self) -> None:
        """Write how far each log has been synced."""
        points = {key: log.recovery_point for key, log in self.logs.items()}
        self._write(RECOVERY_POINT_CHECKPOINT, points)

    def _write(self, name: str, offsets: dict[TopicPartition, int]) -> None:
        if offsets != self._written.get(name):
            write_offsets(self._storage, f"{self.path}/{name}", offsets)
            self._written[name] = offsets

    def close(self, broker_epoch: int) -> None:
        """Stop cleanly: everything flushed and written, and the mark that says so."""
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
        """Let another process have the directory."""
        self._lock = None

    def fail(self, reason: str) -> list[TopicPartition]:
        """Go offline; gives the partitions that are gone with it."""
        lost = list(self.logs)
        self.failure = reason
        self.logs, self.future_logs = {}, {}
        self._lock = None
        _logger.error("log directory offline path=%s reason=%s", self.path, reason)
        return lost
