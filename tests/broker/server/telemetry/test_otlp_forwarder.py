"""Pushes on their way to an OTLP endpoint: bounded, and never in the way of the broker."""

import asyncio

import pytest
from aiohttp import ClientSession, web

from broker.server.telemetry.otlp_forwarder import MAX_QUEUED_BYTES, OtlpForwarder


async def serve(status: int) -> tuple[web.AppRunner, str, list[bytes]]:
    bodies: list[bytes] = []

    async def take(request: web.Request) -> web.Response:
        bodies.append(await request.read())
        return web.Response(status=status)

    app = web.Application()
    app.router.add_post("/v1/metrics", take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}/v1/metrics", bodies


async def settled(forwarder: OtlpForwarder, count: int) -> None:
    while forwarder.sent_count + forwarder.dropped_count < count:
        await asyncio.sleep(0.01)


def test_pushes_are_sent_in_order() -> None:
    async def scenario() -> None:
        runner, url, bodies = await serve(200)
        forwarder = OtlpForwarder(url, now=lambda: 0.0)
        for number in range(3):
            forwarder.send(b"%d" % number)
        await settled(forwarder, 3)
        forwarder.send(b"3")
        await settled(forwarder, 4)
        assert bodies == [b"0", b"1", b"2", b"3"]
        await runner.cleanup()

    asyncio.run(scenario())


def test_a_push_that_comes_when_all_are_sent_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        runner, url, bodies = await serve(200)
        forwarder = OtlpForwarder(url, now=lambda: 0.0)
        late = [b"late"]
        close = ClientSession.close

        async def close_slowly(session: ClientSession) -> None:
            while late:
                forwarder.send(late.pop())
            await close(session)

        monkeypatch.setattr(ClientSession, "close", close_slowly)
        forwarder.send(b"first")
        await asyncio.wait_for(settled(forwarder, 2), 60)
        assert bodies == [b"first", b"late"]
        await runner.cleanup()

    asyncio.run(scenario())


def test_what_the_endpoint_does_not_take_is_dropped_and_counted() -> None:
    async def scenario() -> None:
        runner, url, _ = await serve(503)
        forwarder = OtlpForwarder(url, now=lambda: 0.0)
        forwarder.send(b"x")
        await settled(forwarder, 1)
        await runner.cleanup()
        forwarder.send(b"y")  # nobody listens there
        await settled(forwarder, 2)
        assert (forwarder.sent_count, forwarder.dropped_count) == (0, 2)

    asyncio.run(scenario())


def test_the_queue_is_bounded_in_bytes() -> None:
    async def scenario() -> None:
        forwarder = OtlpForwarder("http://127.0.0.1:1/", now=lambda: 0.0)
        forwarder.send(bytes(MAX_QUEUED_BYTES))
        forwarder.send(b"x")
        assert forwarder.dropped_count == 1
        forwarder.stop()

    asyncio.run(scenario())
