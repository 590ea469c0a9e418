"""Moves partitions between log directories, a piece at a time, while they are used (KIP-113)."""

import asyncio
import logging
from typing import TYPE_CHECKING

from broker.model import TopicPartition

if TYPE_CHECKING:
    from broker.server.broker import Broker

log = logging.getLogger("millrace.mover")

PIECE_BYTES = 1024 * 1024
PAUSE_SECONDS = 0.001  # lets requests in between two pieces


class Mover:
    """Owns the moves under way; `log.moves` does the copying, the loop is shared with requests."""

    def __init__(self, broker: "Broker", loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Go on with the moves that a stop interrupted."""
        self._schedule()

    def stop(self) -> None:
        """Stop; the next start goes on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def move(self, topic_partition: TopicPartition, path: str) -> None:
        """Begin to move a partition to another directory; raises KafkaError."""
        self._broker.partitions.get(*topic_partition)
        if self._broker.log_directories.move(topic_partition, path):
            log.info("move begun topic_partition=%s log_dir=%s", topic_partition, path)
        self._schedule()

    def _schedule(self) -> None:
        if self._timer is None and self._broker.log_directories.moving():
            self._timer = self._loop.call_later(PAUSE_SECONDS, self._advance)

    def _advance(self) -> None:
        self._timer = None
        for topic_partition in self._broker.log_directories.moving():
            try:
                self._advance_one(topic_partition)
            except OSError as error:
                self._broker.on_storage_failure(*topic_partition, error)
        self._schedule()

    def _advance_one(self, topic_partition: TopicPartition) -> None:
        broker = self._broker
        moved = broker.log_directories.advance_move(
            topic_partition, PIECE_BYTES, broker.clock.timestamp_ms()
        )
        if moved is None:
            return
        moved.advance_high_watermark(moved.log_end_offset)
        broker.partitions.get(*topic_partition).log = moved
        broker.housekeeping.remove_deleted_files()
        log.info("move done topic_partition=%s log_dir=%s", topic_partition, moved.directory)
