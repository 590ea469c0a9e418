"""The queue of turns: the requests of one client never block the loop for the others.

A connection handles the requests it has read for one turn, which is limited in time, whatever their
number. The rest (requests read and not begun, a request whose answer takes many steps) waits in
this queue. A round gives each waiting connection one turn, in the order of arrival, and ends early
when it has taken long, so that the loop checks the sockets again.

Invariant: a waiting connection gets a turn after at most one turn of each that waited before it.

A connection that is read from shows the end of its stream. A connection that is not read from,
because too many answers are owed, does not: its answers would wait for a client that has gone.
`HangUps` watches such sockets in a separate epoll only for their end (EPOLLRDHUP), and the loop
watches that epoll. On a system without epoll the end is noticed when reading goes on.
"""

import asyncio
import select
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from broker.server.distribution import Distribution
from broker.server.network.buffers import ReceiveBuffers
from broker.server.network.request_times import Timing

TURN_SECONDS = 0.000_5
"""About thirty small requests: with fifty greedy clients the next client is served within 25 ms,
and the write that ends a turn is a small part of the turn."""
ROUND_SECONDS = 0.005
"""The time that a client with one request waits for clients that have sent thousands."""


class Turns:
    """The queue of a node's connections that have more to do than fits into one turn."""

    __slots__ = ("_is_scheduled", "_waiting", "ends", "loop", "mark", "now", "sends", "timing")

    def __init__(self, loop: asyncio.AbstractEventLoop, now: Callable[[], float]) -> None:
        self.loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_scheduled = False
        self.ends = 0.0
        """The end of the turn that was begun last."""
        self.now = now
        """Monotonic seconds; the clock of the loop has whole milliseconds only."""
        self.mark = 0.0
        """The time at which the turn began, or a request of it was answered."""
        self.timing: Timing | None = None
        """Of the request that was begun last, if it is answered later."""
        self.sends: Distribution | None = None
        """Where a write is counted that does not end at once: of the request answered last."""

    def begin(self) -> float:
        """Begin a turn, and return the time."""
        self.mark = now = self.now()
        self.ends = now + TURN_SECONDS
        return now

    def take_timing(self) -> Timing | None:
        """Return the times of the request that was begun last; None if they are counted."""
        timing, self.timing = self.timing, None
        return timing

    def end(self, timing: Timing | None) -> None:
        """Count a request that was answered later, as its answer is sent away."""
        if timing is not None:
            self.mark = self.now()
            self.sends = timing.end(self.mark)

    def count_write(self, sends: Distribution | None, began: float) -> None:
        """Count a write that did not end at once."""
        if sends is not None:
            sends.add(self.now() - began)

    def is_over(self) -> bool:
        """Return True if the current turn is over, and the rest belongs to the next one."""
        return self.now() >= self.ends

    def wait(self, take_turn: Callable[[], None]) -> None:
        """Call `take_turn` after all that wait have had a turn."""
        self._waiting.append(take_turn)
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            self.loop.call_soon(self._take_round)

    def _take_round(self) -> None:
        self._is_scheduled = False
        ends = self.now() + ROUND_SECONDS
        for _ in range(len(self._waiting)):
            self._waiting.popleft()()
            if self.now() >= ends:
                break
        self._schedule()


class HangUps:
    """The sockets of one loop that are watched for their end alone."""

    __slots__ = ("_epoll", "_loop", "_watched")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll: select.epoll | None = None  # made when first needed
        self._watched: dict[int, Callable[[], None]] = {}

    def watch(self, descriptor: int, on_gone: Callable[[], None]) -> None:
        """Call `on_gone` once when the other end has closed or is lost."""
        if self._epoll is None:
            if not hasattr(select, "epoll"):
                return
            self._epoll = select.epoll()
            self._loop.add_reader(self._epoll.fileno(), self._on_events)
        self._watched[descriptor] = on_gone
        self._epoll.register(descriptor, select.EPOLLRDHUP)

    def unwatch(self, descriptor: int) -> None:
        """Stop watching a descriptor; one that is not watched is ignored."""
        if self._watched.pop(descriptor, None) is not None and self._epoll is not None:
            self._epoll.unregister(descriptor)

    def _on_events(self) -> None:
        assert self._epoll is not None
        for descriptor, _ in self._epoll.poll(0):
            on_gone = self._watched.get(descriptor)
            self.unwatch(descriptor)
            if on_gone is not None:
                on_gone()


class Shared(NamedTuple):
    """The objects that all connections of a listener share."""

    turns: Turns
    buffers: ReceiveBuffers
    hang_ups: HangUps

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop, now: Callable[[], float]) -> "Shared":
        """Make the shared objects for the connections of a loop."""
        return cls(Turns(loop, now), ReceiveBuffers(), HangUps(loop))
