"""Handles a disk that fails: its log directory goes offline, the others go on."""

import logging
from collections.abc import Callable

from broker.log.log_directories import LogDirectories
from broker.model import TopicPartition
from broker.raft.config import METADATA_PARTITION, METADATA_TOPIC
from common.kafka.errors import ErrorCode, KafkaError

log = logging.getLogger("millstream.storage")

METADATA_LOG = TopicPartition(METADATA_TOPIC, METADATA_PARTITION)


class StorageFailures:
    """Takes directories offline. A node whose metadata log is in one cannot go on."""

    def __init__(
        self,
        log_directories: LogDirectories,
        *,
        on_lost: Callable[[TopicPartition], None],
        on_offline: Callable[[], None],
        on_fatal: Callable[[str], None],
    ) -> None:
        self._log_directories = log_directories
        self._on_lost = on_lost
        self._on_offline = on_offline
        self._on_fatal = on_fatal
        log_directories.on_failure = self._take_offline

    def on_failure(self, topic: str, partition: int, error: OSError) -> KafkaError:
        """Take the partition's log directory offline, and return the refusal for the client."""
        log.error("storage failed topic=%s partition=%d error=%s", topic, partition, error)
        directory = self._log_directories.directory_of(TopicPartition(topic, partition))
        if directory is not None:
            self._take_offline(directory.path, error)
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))

    def _take_offline(self, path: str, error: OSError) -> None:
        for lost in self._log_directories.take_offline(path, error):
            self._on_lost(lost)
        self._on_offline()
        if self._log_directories.get(METADATA_LOG) is None:
            self._on_fatal(f"the log directory of the metadata has failed: {error}")
