"""The periodic work of a broker: retention, checkpoints, and the work that other parts register.

One timer for each kind of work, none for each partition: five thousand idle partitions cost
nothing between two rounds.

`DeletedFiles` removes the files of deleted segments and partitions after `file.delete.delay.ms`.
"""

import logging
from collections.abc import Callable

from broker.config.broker_config import BrokerConfig
from broker.log.log_directories import LogDirectories
from broker.server.clock import Clock, Timer

log = logging.getLogger("millstream.housekeeping")

EXPIRE_PRODUCERS_EVERY_MS = 600_000  # producer.id.expiration.check.interval.ms


PATHS_PER_TURN = 16
"""The paths that are removed in one turn. A path is a file or a partition's folder, and ten
thousand may be due at the same time."""


class DeletedFiles:
    """Owns the timer of the next removal."""

    def __init__(self, log_directories: LogDirectories, clock: Clock) -> None:
        self._log_directories = log_directories
        self._clock = clock
        self._timer: Timer | None = None

    def remove_due(self) -> None:
        """Remove some of the paths that are due, and set the timer for the next."""
        self._log_directories.remove_due(self._clock.timestamp_ms(), PATHS_PER_TURN)
        self.stop()
        due_ms = self._log_directories.next_removal_ms()
        if due_ms is not None:
            delay_ms = max(0, due_ms - self._clock.timestamp_ms())
            self._timer = self._clock.call_later(delay_ms, self.remove_due)

    def stop(self) -> None:
        """Stop the timer; the next start of the node removes the rest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Housekeeping:
    """Owns the periodic timers of one broker."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        log_directories: LogDirectories,
        deleted_files: DeletedFiles,
    ) -> None:
        self._config = config
        self._clock = clock
        self._log_directories = log_directories
        self._deleted_files = deleted_files
        self._timers: dict[str, Timer] = {}

    def start(self) -> None:
        """Begin the periodic work on the logs."""
        self.every("retention", self._config.retention_check_interval_ms, self._apply_retention)
        self.every("producers", EXPIRE_PRODUCERS_EVERY_MS, self._expire_producers)
        checkpoint = self._log_directories.checkpoint
        self.every("checkpoint", self._config.flush_checkpoint_interval_ms, checkpoint)

    def stop(self) -> None:
        """Stop all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def every(self, name: str, interval_ms: int, work: Callable[[], None]) -> None:
        """Repeat some work at an interval; an interval of 0 or less disables it."""
        if interval_ms <= 0:
            return

        def run() -> None:
            try:
                work()
            except OSError as error:
                log.error("housekeeping failed work=%s error=%s", name, error)
            self._timers[name] = self._clock.call_later(interval_ms, run)

        self._timers[name] = self._clock.call_later(interval_ms, run)

    def _apply_retention(self) -> None:
        self._log_directories.delete_old_segments(self._clock.timestamp_ms())
        self._deleted_files.remove_due()

    def _expire_producers(self) -> None:
        self._log_directories.expire_producers(self._clock.timestamp_ms())
