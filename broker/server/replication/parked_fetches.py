"""Fetches that found too little and wait for more: parked on their partitions and on one timer.

An append counts down the bytes each parked fetch still misses; those that have enough are answered
once, after all requests of this wake-up have been handled, so that one answer carries as much as
there is. Nothing polls.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from broker.server.clock import monotonic_seconds
from broker.server.network.connection import Connection
from broker.server.network.turns import ROUND_SECONDS


class Awaited(Protocol):
    """Where a fetch waits; a partition is such a place."""

    parked: dict["ParkedFetch", None]
    """Consumers: for what is committed."""
    parked_followers: dict["ParkedFetch", None]
    """Replicas: for whatever is appended."""


class ParkedFetch:
    """A fetch that waits for `missing_bytes` more, until its deadline."""

    __slots__ = (
        "_answer",
        "is_done",
        "is_follower",
        "is_overdue",
        "is_read_committed",
        "missing_bytes",
        "partitions",
        "timer",
    )

    def __init__(
        self,
        partitions: Sequence[Awaited],
        missing_bytes: int,
        answer: Callable[[bool], bool],
        *,
        is_follower: bool = False,
        is_read_committed: bool = False,
    ) -> None:
        self.partitions = partitions
        self.missing_bytes = missing_bytes
        self._answer = answer
        self.is_done = False
        self.timer: asyncio.TimerHandle | None = None
        self.is_follower = is_follower
        self.is_overdue = False
        """Whether it waits no longer, whatever there is."""
        self.is_read_committed = is_read_committed
        """Whether it waits for what is decided, not for all that is committed."""
        for partition in partitions:
            self._places_of(partition)[self] = None

    def _places_of(self, partition: Awaited) -> dict["ParkedFetch", None]:
        return partition.parked_followers if self.is_follower else partition.parked

    def try_answer(self, *, is_final: bool) -> None:
        """Answer if there is enough by now, or whatever there is when `is_final`."""
        if not self.is_done and self._answer(is_final):
            self.cancel()

    def cancel(self) -> None:
        """Stop waiting; idempotent."""
        self.is_done = True
        for partition in self.partitions:
            self._places_of(partition).pop(self, None)
        if self.timer is not None:
            self.timer.cancel()


class ParkedFetches:
    """Every fetch that waits here: no longer than its deadline and its connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._by_connection: dict[Connection, dict[ParkedFetch, None]] = {}
        self._ready: dict[ParkedFetch, None] = {}

    def __len__(self) -> int:
        return sum(
            not fetch.is_done for fetches in self._by_connection.values() for fetch in fetches
        )

    def park(self, connection: Connection, fetch: ParkedFetch, wait_ms: int) -> None:
        """Let a fetch wait for records, at most `wait_ms`."""
        of_connection = self._by_connection.setdefault(connection, {})
        for done in [parked for parked in of_connection if parked.is_done]:
            del of_connection[done]
        of_connection[fetch] = None
        fetch.timer = self._loop.call_later(wait_ms / 1000, self._on_deadline, fetch)

    @staticmethod
    def _on_deadline(fetch: ParkedFetch) -> None:
        fetch.try_answer(is_final=True)

    def wake(self, fetches: Iterable[ParkedFetch]) -> None:
        """Have them answered when the requests of this wake-up are done."""
        if not self._ready:
            self._loop.call_soon(self._answer_ready)
        self._ready.update(dict.fromkeys(fetches))

    def _answer_ready(self) -> None:
        """Answer who is ready, for one round's time: thousands may wait for one partition."""
        ready, ends = self._ready, monotonic_seconds() + ROUND_SECONDS
        while ready:
            fetch = next(iter(ready))
            del ready[fetch]
            fetch.try_answer(is_final=fetch.is_overdue or fetch.missing_bytes > 0)
            if ready and monotonic_seconds() >= ends:
                self._loop.call_soon(self._answer_ready)
                return

    def answer_followers(self, connection: Connection) -> None:
        """Answer what a follower waits for on a connection: it has asked for more already."""
        for fetch in list(self._by_connection.get(connection, ())):
            if fetch.is_follower:
                fetch.try_answer(is_final=True)

    def answer_all(self, connection: Connection) -> None:
        """Answer whatever waits on a connection, soon: its client asks something else by now.

        That would be answered after these, half a second later as consumers are set, and with a
        client that asks for metadata there it would be so much longer until it knows a new leader.
        Another Fetch does not count: who has two of them under way waits with both.
        """
        if waiting := self._by_connection.get(connection):
            for fetch in waiting:
                fetch.is_overdue = True
            self.wake(waiting)

    def on_closed(self, connection: Connection) -> None:
        """Forget whatever waits for a connection that is gone."""
        for fetch in self._by_connection.pop(connection, {}):
            fetch.cancel()
