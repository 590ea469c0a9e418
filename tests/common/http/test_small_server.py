"""The web pages: one page a turn, and none for a client that does not read."""

import asyncio
import socket
from contextlib import suppress
from typing import Any

import pytest

from common.http import small_server
from common.http.accepting import listening_on
from common.http.small_server import (
    MAX_BODY_BYTES,
    Asked,
    LaterPage,
    Page,
    SmallServer,
    text,
)

GET = b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n"


class Pages:
    def __init__(self, body: str) -> None:
        self.made: list[str] = []
        self.body = body

    def page(self) -> Page:
        self.made.append("metrics")
        return text(self.body)


def serve(pages: Pages, scenario: Any) -> None:
    async def run() -> None:
        server = SmallServer(lambda _: pages.page())
        port = server.start(listening_on("127.0.0.1", 0))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await scenario(reader, writer)
        finally:
            writer.close()
            server.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_many_pages_asked_for_at_once_are_made_with_the_loop_turning_between() -> None:
    pages = Pages("x")

    async def scenario(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += len(pages.made) < 100
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count_turns())
        writer.write(GET * 100)
        for _ in range(100):
            assert (await reader.readuntil(b"\r\n\r\nx")).startswith(b"HTTP/1.1 200")
        counting.cancel()
        assert len(pages.made) == 100
        assert turns >= 100

    serve(pages, scenario)


def test_no_page_is_made_for_a_client_that_does_not_read_those_it_has() -> None:
    pages = Pages("x" * 200_000)

    async def scenario(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(GET * 300)
        await writer.drain()
        for _ in range(500):
            await asyncio.sleep(0)
        assert len(pages.made) < 100
        for _ in range(300):
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"content-length: 200000" in head
            await reader.readexactly(200_000)

    serve(pages, scenario)


def test_what_was_asked_for_before_the_end_of_the_stream_is_answered() -> None:
    async def scenario(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(GET * 2)
        writer.write_eof()
        assert (await reader.read()).count(b"HTTP/1.1 200") == 2

    serve(Pages("x"), scenario)


def test_a_name_that_a_site_pointed_here_sees_no_page() -> None:
    pages = Pages("x")

    async def scenario(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for host, status in ((b"evil.example", b"421"), (b"broker-1:9644", b"200")):
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 " + status)
            length = int(head.lower().partition(b"content-length: ")[2].split()[0])
            await reader.readexactly(length)

    serve(pages, scenario)


def test_clients_that_send_half_a_head_or_read_nothing_are_given_up() -> None:
    async def run() -> None:
        pages = Pages("x" * 8_000_000)
        server = SmallServer(lambda _: pages.page(), silent_seconds=0.3)
        port = server.start(listening_on("127.0.0.1", 0))
        opened = []
        for sent in (b"", b"GET /metrics HTTP/1.1\r\nHost: b", GET) * 10:
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(sent)
            opened.append(client)
        while not pages.made or open_connections(server):
            await asyncio.sleep(0.01)
        for client in opened:
            reader, writer = await asyncio.open_connection(sock=client)
            with suppress(ConnectionError):
                assert len(await reader.read()) < 8_000_000
            writer.close()
        server.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def open_connections(server: SmallServer) -> int:
    assert server._server is not None
    return len(server._server.connections)


def test_the_connection_that_is_idle_longest_gives_way_to_a_new_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(small_server, "MAX_CONNECTIONS", 5)

    async def run() -> None:
        server = SmallServer(lambda _: text("x"))
        port = server.start(listening_on("127.0.0.1", 0))
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        for reader, writer in (*held[1:], held[0]):  # the second is idle longest
            writer.write(GET)
            assert (await reader.readuntil(b"\r\n\r\nx")).startswith(b"HTTP/1.1 200")
        newer = []
        for place in (1, 2, 3):
            newer.append(await asyncio.open_connection("127.0.0.1", port))
            reader, writer = newer[-1]
            writer.write(GET)
            assert (await reader.readuntil(b"\r\n\r\nx")).startswith(b"HTTP/1.1 200")
            with suppress(ConnectionError):
                assert await held[place][0].read() == b""
        reader, writer = held[0]
        writer.write(GET)
        assert (await reader.readuntil(b"\r\n\r\nx")).startswith(b"HTTP/1.1 200")
        for _, writer in (*held, *newer):
            writer.close()
        server.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize("host", [b"a\xff", b"x:99999", b"x:abc", b"a/b"])
def test_a_host_that_is_none_is_refused(host: bytes) -> None:
    async def scenario(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")

    serve(Pages("x"), scenario)


def echo(asked: Asked) -> Page | LaterPage | None:
    async def later() -> Page:
        await asyncio.sleep(0)
        return text(f"later {asked.method} {asked.query} {asked.body.decode()}")

    match asked.path:
        case "/now":
            return text(f"now {asked.method} {asked.query} {asked.body.decode()}")
        case "/later":
            return later()
        case "/broken":
            return broken()
        case _:
            return None


async def broken() -> Page:
    await asyncio.sleep(0)
    raise ZeroDivisionError


def ask_changing(*pieces: bytes) -> bytes:
    """Send the pieces one after the other, and return all that a server with changes answers."""

    async def run() -> bytes:
        server = SmallServer(lambda _: text("page"), changes=echo)
        port = server.start(listening_on("127.0.0.1", 0))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.01)
            writer.write_eof()
            return await reader.read()
        finally:
            writer.close()
            server.stop()

    return asyncio.run(asyncio.wait_for(run(), 60))


def posted(path: str, length: int, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {length}", *headers]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


def test_a_body_comes_in_pieces_and_the_next_request_waits_for_a_page_that_is_made_later() -> None:
    got = ask_changing(posted("/later?a=b", 4), b"bo", b"dy" + posted("/now", 1) + b"x")
    assert got.index(b"later POST a=b body") < got.index(b"now POST  x")


def test_a_client_that_waits_for_a_go_ahead_gets_one() -> None:
    got = ask_changing(posted("/now", 4, "Expect: 100-continue"), b"body")
    assert got.startswith(b"HTTP/1.1 100")
    assert b"now POST  body" in got


def test_a_body_that_is_too_long_is_refused() -> None:
    got = ask_changing(posted("/now", MAX_BODY_BYTES + 1), b"x" * (MAX_BODY_BYTES + 1))
    assert got.startswith(b"HTTP/1.1 413")


def test_a_page_that_cannot_be_made_costs_no_connection(caplog: Any) -> None:
    got = ask_changing(posted("/broken", 0), posted("/now", 0))
    assert got.startswith(b"HTTP/1.1 500")
    assert b"now POST" in got
    assert "a page could not be made" in caplog.text


def test_an_unfinished_body_is_no_request() -> None:
    assert b"now" not in ask_changing(posted("/now", 10), b"half")
