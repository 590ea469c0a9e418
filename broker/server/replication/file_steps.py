"""Creates and removes the folders of partitions after a change of the metadata, a few per turn.

One small request may ask for ten thousand partitions, and each takes a part of a millisecond or
more: the event loop serves other requests in between. The first few are done at once, so that a
small topic exists when its change has been applied. For a topic of very many partitions even the
list of steps is only built as their turns come.

Invariant: all steps are done in the order in which they were requested.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

AT_ONCE = 16
PER_TURN = 4
"""Each step takes half a millisecond on a disk that is not busy."""

Work = Callable[[], None]


class FileSteps:
    """Owns the steps that are not done yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Iterator[Work]] = deque()
        self._left = AT_ONCE
        self._is_scheduled = False
        self.on_done: Callable[[], None] = lambda: None
        """Called after a turn in which waiting steps were done."""

    def do(self, work: Iterable[Work]) -> None:
        """Do a step at once, or after those that already wait."""
        self._schedule()
        self._waiting.append(iter(work))
        if len(self._waiting) == 1:
            self._left -= self._do(self._left)

    def _do(self, count: int) -> int:
        """Do waiting steps up to a number; return how many were done."""
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
        """Do all waiting steps at once: the node stops."""
        while self._waiting:
            self._do(PER_TURN)
