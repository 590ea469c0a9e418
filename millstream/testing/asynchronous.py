"""The calls of a broker, a cluster or a stack for coroutines, whose loop must not wait.

await Awaitable(broker).wait_for_records("orders", 10)
"""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

_WITH_CALLS = ("clock", "faults", "requests")
"""What a broker has that has calls too."""
_AT_ONCE = ("address", "client_file", "client_settings", "log", "log_tail", "logs", "node", "view")
"""Calls that ask nobody, and are not awaited."""


class Awaitable:
    """Another object whose methods are called in a thread, each with `await`.

    Other attributes are those of the object, and so are the calls that wait for nobody:
    `bootstrap_servers`, `client_settings()`.
    """

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __repr__(self) -> str:
        return f"<Awaitable {self.wrapped!r}>"

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.wrapped, name)
        if name in _WITH_CALLS:
            return Awaitable(value)
        return _awaited(value) if callable(value) and name not in _AT_ONCE else value


def _awaited(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    async def in_thread(*arguments: Any, **named: Any) -> Any:
        return await asyncio.to_thread(call, *arguments, **named)

    return in_thread
