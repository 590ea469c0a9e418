import asyncio

import pytest

from common.kafka import stopping
from common.kafka.stopping import stop


class CancelsItsOwnTask:
    """Stops as aiokafka's consumer does while a fetch is backing off."""

    async def stop(self) -> None:
        fetching = asyncio.ensure_future(asyncio.sleep(3600))
        fetching.cancel()
        await fetching


class Fails:
    async def stop(self) -> None:
        raise OSError("no route")


class Notes:
    def __init__(self) -> None:
        self.is_stopped = False

    async def stop(self) -> None:
        self.is_stopped = True


def test_whoever_stops_clients_goes_on_whatever_they_raise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> bool:
        last = Notes()
        await stop(CancelsItsOwnTask(), Fails(), None, last)
        return last.is_stopped

    with caplog.at_level("INFO"):
        assert asyncio.run(run())
    assert [record.getMessage() for record in caplog.records] == [
        "a client stopped in the middle of its work client=CancelsItsOwnTask",
        "a client did not stop client=Fails error=OSError('no route')",
    ]


class Hangs:
    """Waits for a broker that is gone, as aiokafka's coordinator does."""

    async def stop(self) -> None:
        await asyncio.Event().wait()


def test_a_client_that_never_stops_is_given_up(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "STOP_SECONDS", 0.01)

    async def run() -> bool:
        last = Notes()
        async with asyncio.timeout(60):
            await stop(Hangs(), last)
        return last.is_stopped

    assert asyncio.run(run())
    assert "a client did not stop in time client=Hangs" in caplog.text
