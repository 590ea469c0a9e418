"""Splits long work on the event loop, so that other requests are served in between."""

import asyncio
from collections.abc import Callable
from typing import Final

_TURN_SECONDS: Final = 0.002
"""A request waits for one such piece of work in each iteration of the loop that it needs."""


class Turns:
    """The turns of one piece of work: it yields when it has run for a five-hundredth of a second.

    All long pieces of work stand in one line, and in an iteration of the loop only the first goes
    on: sixty streams of records hold the other requests no longer than one.
    """

    def __init__(self, now_seconds: Callable[[], float], line: asyncio.Lock) -> None:
        self._now_seconds = now_seconds
        self._line = line
        self._since = now_seconds()

    async def yield_if_long(self) -> None:
        if self._now_seconds() - self._since >= _TURN_SECONDS:
            async with self._line:
                await asyncio.sleep(0)
            self._since = self._now_seconds()
