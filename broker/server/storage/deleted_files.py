"""Removes the files of deleted segments and partitions after file.delete.delay.ms."""

import asyncio

from broker.log.log_directories import LogDirectories
from broker.server.clock import Clock

PATHS_PER_TURN = 16
"""The paths that are removed in one turn. A path is a file or a partition's folder, and ten
thousand may be due at the same time."""


class DeletedFiles:
    """Owns the timer of the next removal."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, log_directories: LogDirectories, clock: Clock
    ) -> None:
        self._loop = loop
        self._log_directories = log_directories
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None

    def remove_due(self) -> None:
        """Remove some of the paths that are due, and set the timer for the next."""
        self._log_directories.remove_due(self._clock.timestamp_ms(), PATHS_PER_TURN)
        self.stop()
        due_ms = self._log_directories.next_removal_ms()
        if due_ms is not None:
            seconds = max(0, due_ms - self._clock.timestamp_ms()) / 1000
            self._timer = self._loop.call_later(seconds, self.remove_due)

    def stop(self) -> None:
        """Stop the timer; the next start of the node removes the rest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
