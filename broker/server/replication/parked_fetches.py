"""Fetches that found too few bytes and wait: parked on their partitions and on one timer.

An append counts down the missing bytes of each parked fetch. A fetch that has enough is continued
once, after all requests of this turn have been handled, so that one answer has all available
records. No fetch polls.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from broker.server.clock import monotonic_seconds
from broker.server.network.connection import Connection
from broker.server.network.later import Later
from broker.server.network.turns import ROUND_SECONDS


class Awaited(Protocol):
    """The place where a fetch waits; a partition is such a place."""

    parked: dict["ParkedFetch", None]
    """Fetches of consumers, which wait for committed records."""
    parked_followers: dict["ParkedFetch", None]
    """Fetches of replicas, which wait for every append."""


class ParkedFetch(Later):
    """A fetch that waits for `missing_bytes` more, until its deadline.

    Its value is True if the fetch has to be answered at once, with all available bytes. If it is
    False and there are too few bytes, the handler calls `wait_on`; it calls `end` for an answer.
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
        """True if it is answered the next time it is woken, with all available bytes."""
        self.is_read_committed = is_read_committed
        """True if it waits for the last stable offset, not for the high watermark."""
        self.is_patient = is_patient
        """True if its client wants more than the first byte (`fetch.min.bytes`)."""
        for partition in partitions:
            self._places_of(partition)[self] = None

    def _places_of(self, partition: Awaited) -> dict["ParkedFetch", None]:
        return partition.parked_followers if self.is_follower else partition.parked

    def awake(self, *, is_final: bool) -> None:
        """Continue the handler, which has to answer if `is_final`."""
        if not self.is_done:
            if is_final:
                self.end()
            self.done(is_final)

    def wait_on(self) -> None:
        """Go on waiting: there were too few bytes."""
        self.is_done = False

    def abandon(self) -> None:
        """Stop waiting: the connection is closed."""
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
    """Every fetch that waits, until its deadline or the end of its connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parked: set[ParkedFetch] = set()
        self._ready: dict[ParkedFetch, None] = {}

    def __len__(self) -> int:
        return len(self._parked)

    @property
    def place_count(self) -> int:
        """The number of places where fetches wait, each fetch counted by itself."""
        return sum(len(fetch.partitions) for fetch in self._parked)

    def park(self, fetch: ParkedFetch, wait_ms: int) -> None:
        """Let a fetch wait for records, at most `wait_ms`."""
        self._parked.add(fetch)
        fetch.timer = self._loop.call_later(wait_ms / 1000, self._on_deadline, fetch)

    @staticmethod
    def _on_deadline(fetch: ParkedFetch) -> None:
        fetch.awake(is_final=True)

    def forget(self, fetch: ParkedFetch) -> None:
        """Remove a fetch that no longer waits."""
        self._parked.discard(fetch)

    def wake(self, fetches: Iterable[ParkedFetch]) -> None:
        """Wake fetches after the requests of this turn."""
        if not self._ready:
            self._loop.call_soon(self._awake_ready)
        self._ready.update(dict.fromkeys(fetches))

    def _awake_ready(self) -> None:
        """Continue the ready fetches, for the time of one round: there may be thousands."""
        ready, ends = self._ready, monotonic_seconds() + ROUND_SECONDS
        while ready:
            fetch = next(iter(ready))
            del ready[fetch]
            fetch.awake(is_final=fetch.is_overdue or fetch.missing_bytes > 0)
            if ready and monotonic_seconds() >= ends:
                self._loop.call_soon(self._awake_ready)
                return


def answer_followers(connection: Connection) -> None:
    """Answer the waiting fetch of a follower's connection: the follower has sent another one."""
    for fetch in _parked_on(connection):
        if fetch.is_follower:
            fetch.awake(is_final=True)


def answer_impatient(parked: ParkedFetches, connection: Connection) -> None:
    """Answer soon the fetches of a connection that wait for the first byte.

    The client has sent another request, whose answer must follow theirs: with the default settings
    of consumers half a second later, which would delay, for example, the metadata with a new
    leader. A client that waits for more than one byte has chosen large answers over early ones, so
    its fetches stay. Another Fetch does not count: a client may wait with two of them.
    """
    waiting = [fetch for fetch in _parked_on(connection) if not fetch.is_patient]
    if waiting:
        for fetch in waiting:
            fetch.is_overdue = True
        parked.wake(waiting)


def _parked_on(connection: Connection) -> list[ParkedFetch]:
    return [place.awaited for place in connection.places if isinstance(place.awaited, ParkedFetch)]
