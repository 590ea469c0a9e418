"""Splits long work on the event loop, so that other requests are served in between."""

import asyncio
from collections.abc import Callable
from typing import Final

_TURN_SECONDS: Final = 0.002
"""Sixty streams that have much to do let others wait for a tenth of a second."""


class Turns:
    """Yields to the loop when the work has run for a five-hundredth of a second."""

    def __init__(self, now_seconds: Callable[[], float]) -> None:
        self._now_seconds = now_seconds
        self._since = now_seconds()

    async def yield_if_long(self) -> None:
        if self._now_seconds() - self._since >= _TURN_SECONDS:
            await asyncio.sleep(0)
            self._since = self._now_seconds()
