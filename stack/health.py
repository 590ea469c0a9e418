"""Asks the parts of a stack whether they live: a process that hangs is there, and does nothing."""

import asyncio
from collections.abc import Mapping
from typing import Final

_SECONDS: Final = 5.0
_REQUEST: Final = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_MISSES: Final = 2
"""So many in a row: after one the machine may only have slept."""


class Health:
    """Remembers how many questions each part has left without an answer."""

    def __init__(self) -> None:
        self._misses: dict[str, int] = {}

    async def ask(self, ports: Mapping[str, int]) -> None:
        """Ask each part at its port of HTTP; it takes five seconds at most."""
        answers = await asyncio.gather(*(_is_live(port) for port in ports.values()))
        self._misses = {
            name: 0 if is_live else self._misses.get(name, 0) + 1
            for name, is_live in zip(ports, answers, strict=True)
        }

    def hangs(self, name: str) -> bool:
        """Return whether a part has not answered lately."""
        return self._misses.get(name, 0) >= _MISSES


async def _is_live(port: int) -> bool:
    try:
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(_REQUEST)
                return b" 200 " in await reader.readline()
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError):
        return False
