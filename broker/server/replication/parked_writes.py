"""Writes that wait until every replica has them, each no longer than its timeout.

A Produce with acks=all waits for the high watermark, a DeleteRecords for the low one. It waits in
one place for each partition that has not got there yet, and is answered when the last of them is
decided, or when its time is over: then what is left is REQUEST_TIMED_OUT. It may be done all the
same; a producer asks again, and an idempotent one gets its first answer.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from broker.errors import ErrorCode
from broker.replication.offset_waits import OffsetWaits
from broker.server.network.connection import Connection
from broker.server.replication.commits import AwaitsCommit

R = TypeVar("R")  # the answer for one partition


class ParkedWrite(Generic[R]):
    """One request. Invariant: `_open` are the partitions that are not decided."""

    __slots__ = ("_answer", "_open", "timer")

    def __init__(self, answer: Callable[[], None]) -> None:
        self._answer = answer
        self._open: dict[_Wait[R], None] = {}
        self.timer: asyncio.TimerHandle | None = None

    @property
    def is_done(self) -> bool:
        """Whether it is answered, or nobody is there to be answered."""
        return not self._open

    def wait_for(
        self,
        waits: OffsetWaits[AwaitsCommit],
        offset: int,
        response: R,
        refuse: Callable[[R, ErrorCode], None],
    ) -> None:
        """Wait until a partition's watermark is at `offset`."""
        wait = _Wait(self, waits, response, refuse)
        self._open[wait] = None
        waits.add(offset, wait)

    def decide(self, wait: "_Wait[R]") -> None:
        """Note that one partition is decided; answer after the last."""
        if self._open.pop(wait, wait) is None and not self._open:
            if self.timer is not None:
                self.timer.cancel()
            self._answer()

    def on_deadline(self) -> None:
        """Answer now: what is not decided has taken too long."""
        for wait in list(self._open):
            wait.give_up()
            wait.refuse(wait.response, ErrorCode.REQUEST_TIMED_OUT)
        self._open.clear()
        self._answer()

    def forget(self) -> None:
        """Wait no more: the connection is closed."""
        for wait in self._open:
            wait.give_up()
        self._open.clear()
        if self.timer is not None:
            self.timer.cancel()


class _Wait(Generic[R]):
    """One partition of a write."""

    __slots__ = ("_waits", "_write", "refuse", "response")

    def __init__(
        self,
        write: ParkedWrite[R],
        waits: OffsetWaits[AwaitsCommit],
        response: R,
        refuse: Callable[[R, ErrorCode], None],
    ) -> None:
        self._write = write
        self._waits = waits
        self.response = response
        self.refuse = refuse

    def on_committed(self, error_code: ErrorCode) -> None:
        if error_code:
            self.refuse(self.response, error_code)
        self._write.decide(self)

    def on_sent_away(self) -> None:
        self.refuse(self.response, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._write.decide(self)

    def give_up(self) -> None:
        self._waits.discard(self)


class ParkedWrites:
    """Every write that waits here: no longer than its deadline and its connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._by_connection: dict[Connection, dict[ParkedWrite[Any], None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_connection.values()))

    def park(self, connection: Connection, write: ParkedWrite[Any], timeout_ms: int) -> None:
        """Let a write wait, at most `timeout_ms`."""
        self._by_connection.setdefault(connection, {})[write] = None
        write.timer = self._loop.call_later(max(0, timeout_ms) / 1000, write.on_deadline)

    def forget(self, connection: Connection, write: ParkedWrite[Any]) -> None:
        """Take out a write that is answered."""
        of_connection = self._by_connection.get(connection)
        if of_connection is not None:
            of_connection.pop(write, None)

    def on_closed(self, connection: Connection) -> None:
        """Forget whatever waits for a connection that is gone."""
        for write in self._by_connection.pop(connection, {}):
            write.forget()
