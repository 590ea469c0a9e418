"""The cleaner's threads: they compact logs while the event loop serves requests.

`log.cleaner` decides and rewrites; this module runs it. The reading and writing of a round run in a
thread; measuring a log and replacing its segments run on the loop, the owner of every log. At most
`log.cleaner.threads` rounds run at once, and at most one for each log.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from broker.config.broker_config import CleanerConfig
from broker.log.cleaner.run import (
    CleaningAborted,
    CleaningLimits,
    CleaningRun,
    finish_round,
    replace_segments,
)
from broker.log.cleaner.schedule import DirtyLog, choose_dirtiest
from broker.log.partition_log import PartitionLog
from broker.model import TopicPartition
from broker.server.clock import Clock, Timer
from broker.server.storage.failures import StorageFailures
from broker.server.storage.housekeeping import DeletedFiles

log = logging.getLogger("millstream.cleaner")

T = TypeVar("T")


class Cleaner:
    """Owns the rounds that are under way. The threads are made when the first round begins."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: CleanerConfig,
        clock: Clock,
        logs: Callable[[], Iterable[PartitionLog]],
        deleted_files: DeletedFiles,
        failures: StorageFailures,
    ) -> None:
        self._loop = loop
        self._config = config
        self._clock = clock
        self._logs = logs
        self._deleted_files = deleted_files
        self._failures = failures
        self._tasks: asyncio.TaskGroup | None = None
        self._busy: set[TopicPartition] = set()
        self._threads: ThreadPoolExecutor | None = None
        self._stopping = threading.Event()
        self._timer: Timer | None = None
        self._throttle = Throttle(clock, self._stopping, config.io_max_bytes_per_second)

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start to look for dirty logs every `log.cleaner.backoff.ms`."""
        self._tasks = tasks
        if self._config.is_enabled:
            self._timer = self._clock.call_later(self._config.backoff_ms, self._look)

    def change(self, config: CleanerConfig) -> None:
        """Set new settings; the rounds under way keep the old ones."""
        if config == self._config:
            return
        self._config = config
        self._throttle.bytes_per_second = config.io_max_bytes_per_second
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None
        if self._timer is not None:
            # The pause under way is as long as the old settings say.
            self._timer.cancel()
            self._timer = self._clock.call_later(config.backoff_ms, self._look)

    def stop(self) -> None:
        """Stop: rounds under way are cancelled, and their logs do not change."""
        self._stopping.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._threads is not None:
            self._threads.shutdown(wait=True)

    def _look(self) -> None:
        self._begin_rounds()
        self._timer = self._clock.call_later(self._config.backoff_ms, self._look)

    def _begin_rounds(self) -> None:
        timestamp_ms = self._clock.timestamp_ms()
        while len(self._busy) < self._config.thread_count and not self._stopping.is_set():
            dirty = choose_dirtiest(self._logs(), self._busy, timestamp_ms)
            if dirty is None:
                return
            self._busy.add(dirty.log.topic_partition)
            assert self._tasks is not None, "rounds begin after the start"
            self._tasks.create_task(self._clean(dirty))

    async def _clean(self, dirty: DirtyLog) -> None:
        topic_partition = dirty.log.topic_partition
        try:
            await self._run_round(dirty)
        except CleaningAborted:
            log.info("cleaning given up topic_partition=%s", topic_partition)
            return
        except OSError as error:
            self._failures.on_failure(*topic_partition, error)
            return
        finally:
            self._busy.discard(topic_partition)
        self._begin_rounds()

    async def _run_round(self, dirty: DirtyLog) -> None:
        timestamp_ms = self._clock.timestamp_ms()
        limits = CleaningLimits(
            memory_bytes=self._config.dedupe_buffer_bytes // self._config.thread_count,
            throttle=self._throttle.pause,
            should_stop=self._stopping.is_set,
        )
        run = CleaningRun(dirty, timestamp_ms, limits)
        await self._in_thread(run.build_offset_map)
        while (replacement := await self._in_thread(run.clean_next_group)) is not None:
            if not replace_segments(dirty.log, replacement, timestamp_ms):
                return
        finish_round(dirty.log, run)
        self._deleted_files.remove_due()
        log.info(
            "log cleaned topic_partition=%s first_dirty_offset=%d bytes_read=%d bytes_written=%d",
            dirty.log.topic_partition,
            dirty.log.first_dirty_offset,
            run.bytes_read,
            run.bytes_written,
        )

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._stopping.is_set():
            raise CleaningAborted
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._config.thread_count, "cleaner")
        return await self._loop.run_in_executor(self._threads, work)


class Throttle:
    """Limits the bytes per second of all threads together."""

    def __init__(self, clock: Clock, stopping: threading.Event, bytes_per_second: float) -> None:
        self._clock = clock
        self._stopping = stopping
        self.bytes_per_second = bytes_per_second
        self._lock = threading.Lock()
        self._free_at_ms = 0.0

    def pause(self, size_bytes: int) -> None:
        """Wait until `size_bytes` more are allowed; returns early when the cleaner stops."""
        with self._lock:
            now_ms = self._clock.now_ms()
            begin_ms = max(self._free_at_ms, now_ms)
            self._free_at_ms = begin_ms + 1000 * size_bytes / self.bytes_per_second
        if begin_ms > now_ms:
            self._stopping.wait((begin_ms - now_ms) / 1000)
