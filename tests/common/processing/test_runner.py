import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from common.processing import runner
from common.processing.service import Running


def test_a_service_whose_processing_is_cancelled_from_within_ends_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def end_by_itself() -> None:
        raise asyncio.CancelledError

    async def assemble() -> None:
        running.processor = cast("Any", SimpleNamespace(run=end_by_itself))

    async def announce(*_: object) -> None: ...

    monkeypatch.setattr(runner, "_announce", announce)
    running = Running()

    async def serve() -> None:
        await asyncio.wait_for(runner._work("x", "u", running, assemble(), asyncio.Event()), 5)

    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(serve())
    assert raised.group_contains(RuntimeError, match="cancelled by something within it")
