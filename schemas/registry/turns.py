"""Turns for work on large texts, so that the event loop serves other requests in between.

The event loop runs all ready tasks before it reads from the network again. Parsing one large body
takes milliseconds; without turns, thirty bodies that arrive together would be parsed in one go.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

_SMALL_BYTES: Final = 32 << 10


class Turns:
    """Grants turns in the order of the calls."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, size_bytes: int) -> AsyncIterator[None]:
        """Wait for the turn to work on so many bytes; the work itself must not await."""
        if size_bytes <= _SMALL_BYTES:
            yield
            return
        async with self._turn:
            await asyncio.sleep(0)
            yield
