"""Tasks that belong to no task group.

A task group is the rule: no task outlives its block. An object that starts a task in one method and
ends it in another starts it here. The object owns the task: it keeps it (the event loop does not),
looks at its outcome, and cancels and awaits it when it stops.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def spawn(coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task that the caller owns."""
    return asyncio.get_running_loop().create_task(coroutine)
