"""Clients that send nothing, part of a request, or what is no HTTP: limited in time and number."""

import asyncio
import gzip
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from common.http import accepting, serving
from common.http.application import build_app
from common.http.serving import runner_of, serve_on
from tests.common.http.test_accepting import programs

SECONDS = 0.3
LARGE_BYTES = 30 << 20
ASK = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
PARTS = {
    "nothing": b"",
    "half a head": b"GET / HTTP/1.1\r\nHost: loc",
    "half a body": b"POST /taking HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf",
    "half a chunk": b"POST /taking HTTP/1.1\r\nHost: localhost\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n9\r\nhalf",
    "half a head after a request": ASK + b"GET / HTTP/1.1\r\nHost: loc",
}
NO_HTTP = (
    b"GET * HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http:// HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: \xff\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: z\r\n\r\n",
    b"POST /taking HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /taking HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
    b"Content-Length: 3\r\nConnection: close\r\n\r\nabc",
    b"POST /none HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n"
    b"Content-Length: 3\r\nConnection: close\r\n\r\nabc",
)


async def taking(request: web.Request) -> web.Response:
    return web.Response(body=await request.read())


async def giving(_: web.Request) -> web.Response:
    return web.Response(body=bytes(LARGE_BYTES))


async def waiting(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await asyncio.sleep(60)
    return response


async def ready() -> list[str]:
    return []


@asynccontextmanager
async def server() -> AsyncIterator[int]:
    app = build_app(CollectorRegistry(), ready, body_seconds=SECONDS)
    app.router.add_post("/taking", taking)
    app.router.add_get("/giving", giving)
    app.router.add_get("/waiting", waiting)
    runner = runner_of(app, shutdown_seconds=1)
    await runner.setup()
    await serve_on(runner, "127.0.0.1", 0)
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def run(check: Callable[[int], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(60), server() as port:
            await check(port)

    asyncio.run(within())


async def told(port: int, sent: bytes) -> bytes:
    """Send, wait until the server closes, and return what it said."""
    client = socket.create_connection(("127.0.0.1", port))
    # Before the server sees the connection: its time for silent clients may be over in a moment.
    client.sendall(sent)
    reader, writer = await asyncio.open_connection(sock=client)
    try:
        return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("part", PARTS)
def test_a_client_that_stops_within_a_request_is_given_up(
    monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(serving, "SILENT_SECONDS", SECONDS)
    monkeypatch.setattr(serving, "LINGERING_SECONDS", SECONDS)

    async def check(port: int) -> None:
        answers = await asyncio.gather(*[told(port, PARTS[part]) for _ in range(50)])
        expected = b"200" if "after" in part else b"408" if b"POST" in PARTS[part] else b""
        assert {answer[9:12] for answer in answers} == {expected}

    run(check)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has it")
def test_a_client_that_reads_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "UNREAD_SECONDS", SECONDS)
    monkeypatch.setattr(serving, "MAX_CONNECTIONS", 1)

    async def check(port: int) -> None:
        # Its answer has begun, so that it is not closed as an idle one.
        (deaf,) = await held(port, 1, b"GET /giving HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not await _is_served(port):
            await asyncio.sleep(0.1)
        assert await _rest(deaf) < LARGE_BYTES // 2  # what the system had taken of it

    run(check)


async def _rest(client: socket.socket) -> int:
    """Read until the connection ends, and return the number of bytes."""
    count = 0
    with client, suppress(ConnectionError):
        while read := await asyncio.get_running_loop().sock_recv(client, 1 << 20):
            count += len(read)
    return count


async def held(port: int, count: int, ask: bytes = ASK) -> list[socket.socket]:
    """Open connections that have been answered once, and only wait."""
    opened = []
    for _ in range(count):
        client = socket.create_connection(("127.0.0.1", port))
        client.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(client, ask)
        assert b" 200 " in await asyncio.get_running_loop().sock_recv(client, 1000)
        opened.append(client)
    return opened


def test_idle_connections_shut_nobody_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "MAX_CONNECTIONS", 5)

    async def check(port: int) -> None:
        loop = asyncio.get_running_loop()
        idle = await held(port, 5)
        for _ in range(20):
            assert await _is_served(port)
        assert await loop.sock_recv(idle[0], 100) == b""  # the one that was idle longest
        for each in idle:
            each.close()

    run(check)
    assert caplog.text.count("as more may be") == 1
    assert "those that are idle longest are closed" in caplog.text


def test_new_clients_are_refused_while_all_connections_are_being_answered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "MAX_CONNECTIONS", 5)

    async def check(port: int) -> None:
        ask = b"GET /waiting HTTP/1.1\r\nHost: localhost\r\n\r\n"
        busy = await held(port, 5, ask)
        for _ in range(20):
            with suppress(ConnectionError):
                assert await told(port, ASK) == b""
        busy.pop().close()
        async with asyncio.timeout(30):
            while not await _is_served(port):
                pass
        for each in busy:
            each.close()

    run(check)
    assert caplog.text.count("as more may be") == 1


def test_a_connection_is_counted_once_while_it_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MAX_CONNECTIONS", 20)

    async def check(port: int) -> None:
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        loop = asyncio.get_running_loop()
        for client in clients:
            client.setblocking(False)
            await loop.sock_sendall(client, ASK)
        for client in clients:
            assert b" 200 " in await loop.sock_recv(client, 1000)
            client.close()

    run(check)


async def _is_served(port: int) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(ASK)
    try:
        return b" 200 " in await reader.read(20)
    except ConnectionError:
        return False
    finally:
        writer.close()


def test_what_is_no_http_is_answered_400_and_costs_a_line_in_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def check(port: int) -> None:
        for sent in NO_HTTP:
            for _ in range(20):
                assert (await told(port, sent))[9:12] in (b"400", b"404"), sent

    logging.getLogger("aiohttp.server").filters.clear()
    run(check)
    said = [each for each in caplog.records if each.levelno >= logging.INFO]
    assert len(said) == 1
    assert "InvalidURLError" in said[0].getMessage()
    assert said[0].exc_info is None


UNREADABLE = [
    (b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "Invalid method encountered"),
    (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", 400, "Bad status line: Invalid HTTP version"),
    (b"GET / HTTP/1.1\r\n\r\n", 400, "Missing 'Host' header in request."),
    (b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\n\r\n", 400, "Got more than 8190 bytes when reading"),
    (
        b"POST /taking HTTP/1.1\r\nHost: x\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
        415,
        "the server knows the content codings gzip and deflate",
    ),
    (
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: \xff\r\n\r\n",
        417,
        "Unknown Expect: \\udcff",
    ),
]


@pytest.mark.parametrize(("sent", "status", "detail"), UNREADABLE)
def test_what_cannot_be_read_is_answered_by_a_problem_document(
    sent: bytes, status: int, detail: str
) -> None:
    async def check(port: int) -> None:
        head, _, body = (await told(port, sent)).partition(b"\r\n\r\n")
        assert b"Content-Type: application/problem+json" in head, head
        problem = json.loads(body)
        assert (problem["status"], problem["detail"]) == (status, detail)

    run(check)


@pytest.mark.parametrize(
    ("coding", "status"),
    [("gzip", 200), ("GZIP", 200), ("identity", 200), ("compress", 415), ("x, gzip", 415)],
)
def test_a_body_in_an_unknown_coding_is_refused(coding: str, status: int) -> None:
    async def check(port: int) -> None:
        body = gzip.compress(b"body") if coding.lower() == "gzip" else b"body"
        head = f"POST /taking HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: {coding}\r\n"
        rest = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        answer = await told(port, (head + rest).encode() + body)
        assert int(answer[9:12]) == status, answer
        assert b"Accept-Encoding: gzip, deflate\r\n" in answer or status == 200

    run(check)


def test_an_error_of_our_own_keeps_its_stack_trace(caplog: pytest.LogCaptureFixture) -> None:
    serving.quiet_logger().error("failed", exc_info=ValueError("ours"))
    assert "ValueError: ours" in caplog.text


def test_a_client_that_is_gone_costs_no_line(caplog: pytest.LogCaptureFixture) -> None:
    async def check(port: int) -> None:
        for sent in (PARTS["half a body"], PARTS["half a chunk"]):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            await asyncio.sleep(0.05)  # so that its body is waited for
            writer.close()
            await asyncio.sleep(0.05)

    run(check)
    serving.quiet_logger().error("failed", exc_info=ConnectionResetError("gone"))
    assert not [each for each in caplog.records if each.levelno >= logging.INFO]


def test_every_program_serves_by_the_runner_with_limits() -> None:
    root = Path(serving.__file__).parents[2]
    found = {str(path.relative_to(root)) for path in programs() if "AppRunner(" in path.read_text()}
    assert found == {"common/http/serving.py"}


@pytest.mark.parametrize("path", ["/health/live", "/none"])
@pytest.mark.parametrize("expected", [b"x", b"\xed\xa0\x80100-continue", b"\xff"])
def test_an_odd_expectation_is_answered_417(
    expected: bytes, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def check(port: int) -> None:
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: ".encode()
        assert (await told(port, head + expected + b"\r\n\r\n"))[9:12] == b"417"

    run(check)
    assert "Traceback" not in caplog.text
