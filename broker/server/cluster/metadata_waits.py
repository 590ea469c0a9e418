"""Answers that wait until this node's metadata has come as far as what they say.

The controller answers when a change is committed; this node hears of it a moment later. Whoever
asked this node finds the change here as soon as it has the answer.
"""

import asyncio
from collections.abc import Callable


class MetadataWaits:
    """Owns who waits for which change of the metadata."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[_Wait, None] = {}

    def until(
        self, is_so: Callable[[], bool], proceed: Callable[[], None], *, timeout_ms: int
    ) -> None:
        """Call `proceed` when `is_so`, at once if it is already, or when the time is over."""
        if is_so():
            proceed()
            return
        wait = _Wait(is_so, proceed)
        wait.timer = self._loop.call_later(timeout_ms / 1000, self._end, wait)
        self._waiting[wait] = None

    def look(self) -> None:
        """See who need not wait any more, after a change."""
        for wait in [wait for wait in self._waiting if wait.is_so()]:
            self._end(wait)

    def _end(self, wait: "_Wait") -> None:
        if wait in self._waiting:
            del self._waiting[wait]
            assert wait.timer is not None
            wait.timer.cancel()
            wait.proceed()


class _Wait:
    __slots__ = ("is_so", "proceed", "timer")

    def __init__(self, is_so: Callable[[], bool], proceed: Callable[[], None]) -> None:
        self.is_so = is_so
        self.proceed = proceed
        self.timer: asyncio.TimerHandle | None = None
