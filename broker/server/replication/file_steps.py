"""What a change of the metadata makes and removes on the disk, a few partitions in a turn.

One small request may ask for ten thousand partitions, and each takes a part of a millisecond or
more: the event loop looks at everybody else in between. The first few are done at once, so that an
ordinary topic is there when its change has been followed; of a topic of very many, not even what is
to be done is made before its turn comes.

Invariant: everything is done in the order in which it was asked for.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

AT_ONCE = 16
PER_TURN = 4
"""Of half a millisecond each, on a disk that is not busy."""

Work = Callable[[], None]


class FileSteps:
    """Owns what is still to be done."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Iterator[Work]] = deque()
        self._left = AT_ONCE
        self._is_scheduled = False
        self.on_done: Callable[[], None] = lambda: None
        """Told after a turn in which something was done that had waited."""

    def do(self, work: Iterable[Work]) -> None:
        """Do something now, or after what waits already."""
        self._schedule()
        self._waiting.append(iter(work))
        if len(self._waiting) == 1:
            self._left -= self._do(self._left)

    def _do(self, count: int) -> int:
        """Do up to so much of what waits; return how much it was."""
        done = 0
        while self._waiting and done < count:
            first = self._waiting[0]
            for work in islice(first, count - done):
                done += 1
                work()
            if done < count:
                self._waiting.popleft()
        return done

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._is_scheduled = False
        self._left = AT_ONCE
        if not self._waiting:
            return
        self._schedule()
        self._do(PER_TURN)
        self.on_done()

    def finish(self) -> None:
        """Do all of it now: the node stops."""
        while self._waiting:
            self._do(PER_TURN)
