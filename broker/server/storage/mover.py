"""Moves partitions between log directories, a piece at a time, while they are used (KIP-113).

No faster than `replica.alter.log.dirs.io.max.bytes.per.second`.
"""

import asyncio
import logging
from collections.abc import Callable

from broker.log.log_directories import LogDirectories
from broker.log.partition_log import PartitionLog
from broker.model import TopicPartition
from broker.quotas.rate import RateLimit
from broker.server.clock import Clock
from broker.server.storage.failures import StorageFailures

log = logging.getLogger("millstream.mover")

PIECE_BYTES = 1024 * 1024
PAUSE_SECONDS = 0.001  # requests are served between two pieces


class Mover:
    """Owns the moves under way; `log.moves` copies, and pauses let the loop serve requests."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        log_directories: LogDirectories,
        failures: StorageFailures,
        rate: RateLimit,
        *,
        on_moved: Callable[[PartitionLog], None],
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._log_directories = log_directories
        self._failures = failures
        self._rate = rate
        self._on_moved = on_moved
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Go on with the moves that a stop interrupted."""
        self._schedule()

    def stop(self) -> None:
        """Stop; the next start of the node continues the moves."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def move(self, topic_partition: TopicPartition, path: str) -> None:
        """Begin to move a partition to another directory; raises KafkaError."""
        if self._log_directories.move(topic_partition, path):
            log.info("move begun topic_partition=%s log_dir=%s", topic_partition, path)
        self._schedule()

    def _schedule(self) -> None:
        if self._timer is None and self._log_directories.moving():
            wait_s = self._rate.wait_ms(self._clock.now_ms()) / 1000
            self._timer = self._loop.call_later(max(PAUSE_SECONDS, wait_s), self._advance)

    def _advance(self) -> None:
        self._timer = None
        for topic_partition in self._log_directories.moving():
            if self._rate.is_exceeded(self._clock.now_ms()):
                break
            try:
                self._advance_one(topic_partition)
            except OSError as error:
                self._failures.on_failure(*topic_partition, error)
        self._schedule()

    def _advance_one(self, topic_partition: TopicPartition) -> None:
        piece = self._log_directories.advance_move(
            topic_partition, PIECE_BYTES, self._clock.timestamp_ms()
        )
        self._rate.record(piece.size_bytes, self._clock.now_ms())
        if piece.log is None:
            return
        self._on_moved(piece.log)
        log.info("move done topic_partition=%s log_dir=%s", topic_partition, piece.log.directory)
