"""What a change of the metadata makes and removes on the disk, a few partitions in a turn.

One small request may ask for ten thousand partitions, and each takes a part of a millisecond or
more: the event loop looks at everybody else in between. The first few are done at once, so that an
ordinary topic is there when its change has been followed.

Invariant: everything is done in the order in which it was asked for.
"""

import asyncio
from collections import deque
from collections.abc import Callable

PER_TURN = 16


class FileSteps:
    """Owns what is still to be done."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._left = PER_TURN
        self._is_scheduled = False
        self.on_done: Callable[[], None] = lambda: None
        """Told after a turn in which something was done that had waited."""

    def do(self, work: Callable[[], None]) -> None:
        """Do something now, or after what waits already."""
        self._schedule()
        if self._left and not self._waiting:
            self._left -= 1
            work()
        else:
            self._waiting.append(work)

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._is_scheduled = False
        self._left = PER_TURN
        if not self._waiting:
            return
        self._schedule()
        while self._left and self._waiting:
            self._left -= 1
            self._waiting.popleft()()
        self.on_done()

    def finish(self) -> None:
        """Do all of it now: the node stops."""
        while self._waiting:
            self._waiting.popleft()()
