"""Produces with acks=all that wait for the high watermark, each no longer than its timeout.

A produce waits in one place for each partition that is not committed yet, and is answered when the
last of them is decided, or when its time is over: then what is left is REQUEST_TIMED_OUT. It may be
committed all the same; the producer asks again, and an idempotent one gets its first answer.
"""

import asyncio
from collections.abc import Callable

from broker.errors import ErrorCode
from broker.protocol.messages.produce import PartitionProduceResponse
from broker.replication.produce_waits import ProduceWaits
from broker.server.network.connection import Connection
from broker.server.replication.commits import AwaitsCommit


class ParkedProduce:
    """One request. Invariant: `_open` are the partitions that are not decided."""

    __slots__ = ("_answer", "_open", "timer")

    def __init__(self, answer: Callable[[], None]) -> None:
        self._answer = answer
        self._open: dict[_Wait, None] = {}
        self.timer: asyncio.TimerHandle | None = None

    @property
    def is_done(self) -> bool:
        """Whether it is answered, or nobody is there to be answered."""
        return not self._open

    def wait_for(
        self,
        waits: ProduceWaits[AwaitsCommit],
        end_offset: int,
        response: PartitionProduceResponse,
        refuse: Callable[[PartitionProduceResponse, ErrorCode], None],
    ) -> None:
        """Wait until a partition's high watermark is at `end_offset`."""
        wait = _Wait(self, waits, response, refuse)
        self._open[wait] = None
        waits.add(end_offset, wait)

    def decide(self, wait: "_Wait") -> None:
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


class _Wait:
    """One partition of a produce."""

    __slots__ = ("_produce", "_waits", "refuse", "response")

    def __init__(
        self,
        produce: ParkedProduce,
        waits: ProduceWaits[AwaitsCommit],
        response: PartitionProduceResponse,
        refuse: Callable[[PartitionProduceResponse, ErrorCode], None],
    ) -> None:
        self._produce = produce
        self._waits = waits
        self.response = response
        self.refuse = refuse

    def on_committed(self, error_code: ErrorCode) -> None:
        if error_code:
            self.refuse(self.response, error_code)
        self._produce.decide(self)

    def on_sent_away(self) -> None:
        self.refuse(self.response, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._produce.decide(self)

    def give_up(self) -> None:
        self._waits.discard(self)


class ParkedProduces:
    """Every produce that waits here: no longer than its deadline and its connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._by_connection: dict[Connection, dict[ParkedProduce, None]] = {}

    def park(self, connection: Connection, produce: ParkedProduce, timeout_ms: int) -> None:
        """Let a produce wait, at most `timeout_ms`."""
        self._by_connection.setdefault(connection, {})[produce] = None
        produce.timer = self._loop.call_later(max(0, timeout_ms) / 1000, produce.on_deadline)

    def forget(self, connection: Connection, produce: ParkedProduce) -> None:
        """Take out a produce that is answered."""
        of_connection = self._by_connection.get(connection)
        if of_connection is not None:
            of_connection.pop(produce, None)

    def on_closed(self, connection: Connection) -> None:
        """Forget whatever waits for a connection that is gone."""
        for produce in self._by_connection.pop(connection, {}):
            produce.forget()
