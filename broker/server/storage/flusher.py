"""Syncing logs to disk beside the loop: after a roll, and `flush.ms` after an append.

By default no log is synced on a timer: durability comes from replication and the page cache, and a
sync limits how much a restart after a crash must check. `log.flush` knows which logs are due; this
module syncs them in one thread, while the loop, the owner of every log, goes on appending.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from broker.log.local_log import LocalLog
from broker.log.log_directories import LogDirectories
from broker.server.clock import Clock, Timer
from broker.server.storage.failures import StorageFailures


class Flusher:
    """Owns the timer of the next flush and the thread that syncs; neither exists before it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        log_directories: LogDirectories,
        failures: StorageFailures,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._log_directories = log_directories
        self._failures = failures
        self._tasks: asyncio.TaskGroup | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._timer: tuple[int, Timer] | None = None
        """The timestamp of the next flush, and its timer."""

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start to flush the logs that are due."""
        self._tasks = tasks
        self.schedule()

    def stop(self) -> None:
        """Stop the timer and wait for the flush under way; a clean stop flushes the rest."""
        self._tasks = None
        if self._timer is not None:
            self._timer[1].cancel()
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)

    def schedule(self) -> None:
        """Set the timer for the next flush."""
        due_ms = self._log_directories.next_flush_ms()
        if due_ms is None or self._tasks is None:
            return
        if self._timer is not None:
            if self._timer[0] <= due_ms:
                return
            self._timer[1].cancel()
        delay_ms = max(0, due_ms - self._clock.timestamp_ms())
        self._timer = due_ms, self._clock.call_later(delay_ms, self._flush_due)

    def _flush_due(self) -> None:
        self._timer = None
        for log in self._log_directories.flushes_due(self._clock.timestamp_ms()):
            if self._tasks is not None:
                self._tasks.create_task(self._flush(log))
        self.schedule()

    async def _flush(self, log: LocalLog) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "flusher")
        work = log.prepare_flush()
        try:
            await self._loop.run_in_executor(self._thread, work.run)
            log.finish_flush(work)
        except OSError as error:
            # A failed sync is never tried again: the pages may be gone.
            self._failures.on_failure(*log.topic_partition, error)
