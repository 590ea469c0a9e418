"""The cleaner follows `log.cleaner.backoff.ms` while it waits."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from broker.config.broker_config import CleanerConfig
from broker.server.clock import SystemClock, Timer
from broker.server.storage.cleaner import Cleaner


class RecordedTimers(SystemClock):
    """A clock whose timers are kept and never due."""

    def __init__(self) -> None:
        self.delays: dict[Timer, float] = {}

    def call_later(self, delay_ms: float, callback: Callable[..., None], *arguments: Any) -> Timer:
        """Keep the timer until it is cancelled."""
        timer = RecordedTimer(self.delays)
        self.delays[timer] = delay_ms
        return timer


class RecordedTimer:
    """A timer that leaves its clock when it is cancelled."""

    def __init__(self, delays: dict[Timer, float]) -> None:
        self._delays = delays

    def cancel(self) -> None:
        """Do not call."""
        del self._delays[self]


def cleaner_config(backoff_ms: int) -> CleanerConfig:
    return CleanerConfig(
        is_enabled=True,
        thread_count=1,
        backoff_ms=backoff_ms,
        dedupe_buffer_bytes=1_000_000,
        io_max_bytes_per_second=float("inf"),
    )


def test_a_shorter_pause_counts_at_once_and_not_after_the_long_one() -> None:
    clock = RecordedTimers()
    unused = cast("Any", None)  # No log is dirty, so no round runs.
    cleaner = Cleaner(unused, cleaner_config(15_000), clock, list, unused, unused)
    cleaner.start(cast("asyncio.TaskGroup", unused))
    assert list(clock.delays.values()) == [15_000]
    cleaner.change(cleaner_config(200))
    assert list(clock.delays.values()) == [200]
    cleaner.change(cleaner_config(200))
    assert list(clock.delays.values()) == [200]
    cleaner.stop()
    assert not clock.delays
