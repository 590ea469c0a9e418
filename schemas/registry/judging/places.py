"""Limits the questions that are answered at a time: one for each client, and a number in all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from schemas.registry.refusals import too_many_requests


@dataclass(slots=True)
class _Client:
    place: asyncio.Lock = field(default_factory=asyncio.Lock)
    questions: int = 0
    """The questions of one client that are being answered, and those that wait."""


class Places:
    """Counts the questions of each client; a client without questions has no entry."""

    def __init__(self, count: int, *, waiting: int, client_waiting: int, seconds: float) -> None:
        self._places = asyncio.Semaphore(count)
        self._waiting_limit = waiting
        self._client_limit = client_waiting
        self._seconds = seconds
        self._clients: dict[str, _Client] = {}
        self._questions = 0

    @asynccontextmanager
    async def place(self, client: str) -> AsyncIterator[None]:
        """Wait for a place. Raises RegistryError, 429, when too many wait or it takes too long."""
        known = self._clients.setdefault(client, _Client())
        if self._questions >= self._waiting_limit or known.questions >= self._client_limit:
            if not known.questions:
                del self._clients[client]
            raise too_many_requests()
        known.questions += 1
        self._questions += 1
        try:
            async with _within(known.place, self._seconds), _within(self._places, self._seconds):
                yield
        finally:
            self._questions -= 1
            known.questions -= 1
            if not known.questions:
                del self._clients[client]


@asynccontextmanager
async def _within(place: asyncio.Lock | asyncio.Semaphore, seconds: float) -> AsyncIterator[None]:
    try:
        await asyncio.wait_for(place.acquire(), seconds)
    except TimeoutError:
        raise too_many_requests() from None
    try:
        yield
    finally:
        place.release()
