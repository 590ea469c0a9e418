"""Calls the methods of connectors and tasks, plain or async, in their own thread."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Caller:
    """Owns the event loop of one thread, created by the first call of an async method.

    All methods but `from_outside` are called in that thread.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method and return its result."""
        given = method(*arguments)
        if given is None or not inspect.isawaitable(given):
            return given
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(_awaited(given))

    def from_outside(self, method: Callable[[], Any]) -> None:
        """Call a method while the thread runs another one; does not wait for the call."""
        given = method()
        loop = self._loop
        if inspect.iscoroutine(given):
            if loop is None or not loop.is_running():
                given.close()
                return
            asyncio.run_coroutine_threadsafe(given, loop)

    def close(self) -> None:
        if self._loop is None:
            return
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
        self._loop = None


async def _awaited(given: Awaitable[T]) -> T:
    return await given
