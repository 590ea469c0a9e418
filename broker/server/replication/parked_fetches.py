"""Fetches that found too little and wait for more: parked on their partitions and on one timer.

An append counts down the bytes each parked fetch still misses; those that have enough are continued
once, after all requests of this wake-up have been handled, so that one answer carries as much as
there is. Nothing polls.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from broker.server.clock import monotonic_seconds
from broker.server.network.connection import Connection
from broker.server.network.later import Later
from broker.server.network.turns import ROUND_SECONDS


class Awaited(Protocol):
    """Where a fetch waits; a partition is such a place."""

    parked: dict["ParkedFetch", None]
    """Consumers: for what is committed."""
    parked_followers: dict["ParkedFetch", None]
    """Replicas: for whatever is appended."""


class ParkedFetch(Later):
    """A fetch that waits for `missing_bytes` more, until its deadline.

    It is done with whether it has to be answered now, whatever there is. If not, and there turns
    out to be too little, it waits on (`wait_on`); a fetch that is answered says so (`end`).
    """

    __slots__ = (
        "_parked",
        "is_follower",
        "is_overdue",
        "is_patient",
        "is_read_committed",
        "missing_bytes",
        "partitions",
        "timer",
    )

    def __init__(
        self,
        parked: "ParkedFetches",
        partitions: Sequence[Awaited],
        missing_bytes: int,
        *,
        is_follower: bool = False,
        is_read_committed: bool = False,
        is_patient: bool = False,
    ) -> None:
        super().__init__()
        self._parked = parked
        self.partitions = partitions
        self.missing_bytes = missing_bytes
        self.timer: asyncio.TimerHandle | None = None
        self.is_follower = is_follower
        self.is_overdue = False
        """Whether it is answered at the next occasion, with whatever there is."""
        self.is_read_committed = is_read_committed
        """Whether it waits for what is decided, not for all that is committed."""
        self.is_patient = is_patient
        """Whether its client wants more than the first byte (`fetch.min.bytes`)."""
        for partition in partitions:
            self._places_of(partition)[self] = None

    def _places_of(self, partition: Awaited) -> dict["ParkedFetch", None]:
        return partition.parked_followers if self.is_follower else partition.parked

    def awake(self, *, is_final: bool) -> None:
        """Let the handler look, and answer whatever there is when `is_final`."""
        if not self.is_done:
            if is_final:
                self.end()
            self.done(is_final)

    def wait_on(self) -> None:
        """Wait for more: there was too little after all."""
        self.is_done = False

    def abandon(self) -> None:
        """Wait no more: the connection is closed."""
        super().abandon()
        self.end()

    def end(self) -> None:
        """Stop waiting; idempotent."""
        for partition in self.partitions:
            self._places_of(partition).pop(self, None)
        if self.timer is not None:
            self.timer.cancel()
        self._parked.forget(self)


class ParkedFetches:
    """Every fetch that waits here: no longer than its deadline and its connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parked: set[ParkedFetch] = set()
        self._ready: dict[ParkedFetch, None] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, fetch: ParkedFetch, wait_ms: int) -> None:
        """Let a fetch wait for records, at most `wait_ms`."""
        self._parked.add(fetch)
        fetch.timer = self._loop.call_later(wait_ms / 1000, self._on_deadline, fetch)

    @staticmethod
    def _on_deadline(fetch: ParkedFetch) -> None:
        fetch.awake(is_final=True)

    def forget(self, fetch: ParkedFetch) -> None:
        """Take out a fetch that waits no more."""
        self._parked.discard(fetch)

    def wake(self, fetches: Iterable[ParkedFetch]) -> None:
        """Have them look when the requests of this wake-up are done."""
        if not self._ready:
            self._loop.call_soon(self._awake_ready)
        self._ready.update(dict.fromkeys(fetches))

    def _awake_ready(self) -> None:
        """Let those look that are ready, for one round's time: thousands may wait for one."""
        ready, ends = self._ready, monotonic_seconds() + ROUND_SECONDS
        while ready:
            fetch = next(iter(ready))
            del ready[fetch]
            fetch.awake(is_final=fetch.is_overdue or fetch.missing_bytes > 0)
            if ready and monotonic_seconds() >= ends:
                self._loop.call_soon(self._awake_ready)
                return


def answer_followers(connection: Connection) -> None:
    """Answer what a follower waits for on a connection: it has asked for more already."""
    for fetch in _parked_on(connection):
        if fetch.is_follower:
            fetch.awake(is_final=True)


def answer_impatient(parked: ParkedFetches, connection: Connection) -> None:
    """Answer soon the fetches of a connection that wait for the first byte.

    Its client asks something else by now, which is answered behind them: half a second later as
    consumers are set, and with a client that asks for metadata it would be so much longer until it
    knows a new leader. A client that waits for more than one byte has chosen that answers be large
    rather than soon, and waits. Another Fetch does not count: a client that has two of them under
    way waits with both.
    """
    waiting = [fetch for fetch in _parked_on(connection) if not fetch.is_patient]
    if waiting:
        for fetch in waiting:
            fetch.is_overdue = True
        parked.wake(waiting)


def _parked_on(connection: Connection) -> list[ParkedFetch]:
    return [place.awaited for place in connection.places if isinstance(place.awaited, ParkedFetch)]
