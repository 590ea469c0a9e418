"""Notices that a client is gone while nothing is read from its connection.

A connection that is read from shows the end of its stream. A connection that is not read from,
because too many answers are owed, does not: its answers would wait for a client that has gone. A
separate epoll watches such sockets only for their end (EPOLLRDHUP), and the loop watches that
epoll. On a system without epoll the end is noticed when reading goes on.
"""

import asyncio
import select
from collections.abc import Callable


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
