"""Answers that wait until this node has applied the metadata change that they report.

The controller answers when a change is committed; this node applies it a moment later. A client
that gets its answer from this node finds the change on this node.
"""

import asyncio
from collections.abc import Callable

from broker.server.network.later import Later, happened


class MetadataWaits:
    """Owns the answers that wait for changes of the metadata."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[_Wait, None] = {}

    def until(self, is_so: Callable[[], bool], *, timeout_ms: int) -> Later:
        """Return a Later that is done when `is_so` returns True, or when the time is over."""
        if is_so():
            return happened(None)
        wait = _Wait(is_so)
        wait.timer = self._loop.call_later(timeout_ms / 1000, self._end, wait)
        self._waiting[wait] = None
        return wait

    def look(self) -> None:
        """Send the answers that need not wait longer, after a change."""
        for wait in [wait for wait in self._waiting if wait.is_so()]:
            self._end(wait)

    def _end(self, wait: "_Wait") -> None:
        if wait in self._waiting:
            del self._waiting[wait]
            assert wait.timer is not None
            wait.timer.cancel()
            wait.done()


class _Wait(Later):
    __slots__ = ("is_so", "timer")

    def __init__(self, is_so: Callable[[], bool]) -> None:
        super().__init__()
        self.is_so = is_so
        self.timer: asyncio.TimerHandle | None = None
