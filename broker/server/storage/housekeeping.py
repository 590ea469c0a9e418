"""What the broker does now and then: retention, checkpoints, idle connections, old offsets.

One timer for each kind of work, none for each partition: five thousand idle partitions cost
nothing between two rounds.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.server.broker import Broker

log = logging.getLogger("millrace.housekeeping")

EXPIRE_PRODUCERS_EVERY_MS = 600_000  # producer.id.expiration.check.interval.ms


class Housekeeping:
    """Owns the periodic timers of one broker."""

    def __init__(self, broker: "Broker", loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._loop = loop
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def start(self) -> None:
        """Begin every kind of periodic work."""
        broker, config = self._broker, self._broker.config
        self._every("retention", config.retention_check_interval_ms, self._apply_retention)
        self._every("producers", EXPIRE_PRODUCERS_EVERY_MS, self._expire_producers)
        self._every("checkpoint", config.flush_checkpoint_interval_ms, self._checkpoint)
        offsets_ms = config.group.offsets_retention_check_interval_ms
        self._every("offsets", offsets_ms, broker.groups.expire_offsets)
        idle_ms = config.connections_max_idle_ms
        if idle_ms >= 0:
            self._every("idle", max(100, idle_ms // 10), self._close_idle)

    def stop(self) -> None:
        """Stop all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _every(self, name: str, interval_ms: int, work: Callable[[], None]) -> None:
        if interval_ms <= 0:
            return

        def run() -> None:
            try:
                work()
            except OSError as error:
                log.error("housekeeping failed work=%s error=%s", name, error)
            self._timers[name] = self._loop.call_later(interval_ms / 1000, run)

        self._timers[name] = self._loop.call_later(interval_ms / 1000, run)

    def remove_deleted_files(self) -> None:
        """Remove the files whose delay is over, and come again when the next are due."""
        directories, clock = self._broker.log_directories, self._broker.clock
        directories.remove_due(clock.timestamp_ms())
        due_ms = directories.next_removal_ms()
        timer = self._timers.pop("removal", None)
        if timer is not None:
            timer.cancel()
        if due_ms is not None:
            seconds = max(0, due_ms - clock.timestamp_ms()) / 1000
            self._timers["removal"] = self._loop.call_later(seconds, self.remove_deleted_files)

    def _apply_retention(self) -> None:
        self._broker.log_directories.delete_old_segments(self._broker.clock.timestamp_ms())
        self.remove_deleted_files()

    def _expire_producers(self) -> None:
        self._broker.log_directories.expire_producers(self._broker.clock.timestamp_ms())

    def _checkpoint(self) -> None:
        self._broker.log_directories.checkpoint()

    def _close_idle(self) -> None:
        idle_since = self._loop.time() - self._broker.config.connections_max_idle_ms / 1000
        for listener in self._broker.listeners.values():
            listener.close_idle(idle_since)
