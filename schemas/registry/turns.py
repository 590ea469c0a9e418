"""Turns for work on large texts: one piece between two looks at the network.

The event loop runs everything that is ready before it looks for requests again. Reading one large
body takes milliseconds; without turns, thirty that arrive together would be read in one go.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

_SMALL_BYTES: Final = 32 << 10


class Turns:
    """Gives turns in the order in which they are asked for."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, size_bytes: int) -> AsyncIterator[None]:
        """Wait until work on so many bytes may be done; the work itself must not await."""
        if size_bytes <= _SMALL_BYTES:
            yield
            return
        async with self._turn:
            await asyncio.sleep(0)
            yield
