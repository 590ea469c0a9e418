"""Writes that wait until every replica has them, each no longer than its timeout.

A Produce with acks=all waits for the high watermark, a DeleteRecords for the low watermark. It
waits at each partition whose watermark is not high enough yet, and is answered when the last of
them is decided, or when its time is over: the other partitions are then REQUEST_TIMED_OUT. The
write may still complete: a producer retries, and an idempotent producer gets its first answer.
"""

import asyncio
from typing import Protocol

from broker.replication.offset_waits import OffsetWaits
from broker.server.network.later import Later
from broker.server.replication.partitions import AwaitsCommit
from common.kafka.errors import ErrorCode


class Refusable(Protocol):
    """The answer for one partition."""

    error_code: int


class ParkedWrite(Later):
    """One request. Invariant: `_open` has the partitions that are not decided."""

    __slots__ = ("_open", "_parked", "_timer")

    def __init__(self, parked: "ParkedWrites") -> None:
        super().__init__()
        self._parked = parked
        self._open: dict[_Wait, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def wait_for(self, waits: OffsetWaits[AwaitsCommit], offset: int, response: Refusable) -> None:
        """Wait until a partition's watermark is at `offset`."""
        wait = _Wait(self, waits, response)
        self._open[wait] = None
        waits.add(offset, wait)

    def until_decided(self, timeout_ms: int) -> "ParkedWrite":
        """Set the longest wait; return itself, which is done already if no partition is open."""
        if self._open:
            self._timer = self._parked.park(self, timeout_ms)
        else:
            self.done()
        return self

    def decide(self, wait: "_Wait") -> None:
        """Decide one partition; continue the handler after the last."""
        if self._open.pop(wait, wait) is None and not self._open:
            self._end()
            self.done()

    def on_deadline(self) -> None:
        """Continue the handler: the partitions that are not decided have timed out."""
        for wait in self._open:
            wait.give_up()
            wait.response.error_code = ErrorCode.REQUEST_TIMED_OUT
        self._open.clear()
        self._end()
        self.done()

    def abandon(self) -> None:
        """Stop waiting: the connection is closed."""
        super().abandon()
        for wait in self._open:
            wait.give_up()
        self._open.clear()
        self._end()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._parked.forget(self)


class _Wait:
    """One partition of a write."""

    __slots__ = ("_waits", "_write", "response")

    def __init__(
        self, write: ParkedWrite, waits: OffsetWaits[AwaitsCommit], response: Refusable
    ) -> None:
        self._write = write
        self._waits = waits
        self.response = response

    def on_committed(self, error_code: ErrorCode) -> None:
        if error_code:
            self.response.error_code = error_code
        self._write.decide(self)

    def on_sent_away(self) -> None:
        self.response.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        self._write.decide(self)

    def give_up(self) -> None:
        self._waits.discard(self)


class ParkedWrites:
    """Every write that waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parked: set[ParkedWrite] = set()

    def __len__(self) -> int:
        return len(self._parked)

    def begin(self) -> ParkedWrite:
        """Return a write without partitions."""
        return ParkedWrite(self)

    def park(self, write: ParkedWrite, timeout_ms: int) -> asyncio.TimerHandle:
        """Let a write wait, at most `timeout_ms`."""
        self._parked.add(write)
        return self._loop.call_later(max(0, timeout_ms) / 1000, write.on_deadline)

    def forget(self, write: ParkedWrite) -> None:
        """Remove a write that no longer waits."""
        self._parked.discard(write)
