"""Whose turn it is: one client's requests never keep the loop from the others.

A connection handles the requests it has read for one turn, which is bounded in time, whatever
their number. What is left (requests read and not begun, a request whose answer is a long walk)
waits here behind that of every other connection. A round gives each who waits one turn, in the
order they came, and ends early when it has taken long, so that the loop looks at the sockets again.

Invariant: whoever waits gets a turn after at most one turn of each who waited before.
"""

import asyncio
from collections import deque
from collections.abc import Callable

TURN_SECONDS = 0.000_5
"""Some thirty small requests: with fifty greedy clients the next one is served within 25 ms, and
the write that ends a turn is still a small part of it."""
ROUND_SECONDS = 0.005
"""A client that has sent one request waits so long for those who have sent thousands."""


class Turns:
    """The queue of a node's connections that have more to do than fits into one turn."""

    __slots__ = ("_is_scheduled", "_waiting", "ends", "loop", "now")

    def __init__(self, loop: asyncio.AbstractEventLoop, now: Callable[[], float]) -> None:
        self.loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_scheduled = False
        self.ends = 0.0
        """When the turn that was begun last is over."""
        self.now = now
        """Monotonic seconds, finer than those of the loop, which are whole milliseconds."""

    def begin(self) -> float:
        """Begin a turn, and return the time."""
        now = self.now()
        self.ends = now + TURN_SECONDS
        return now

    def is_over(self) -> bool:
        """Whether whoever has the turn should leave the rest for its next one."""
        return self.now() >= self.ends

    def wait(self, take_turn: Callable[[], None]) -> None:
        """Call `take_turn` when everybody who waits has had a turn."""
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
