"""Half a TLS handshake costs little, ends, and shuts nobody out."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from common.http import accepting
from common.http.application import build_app
from common.http.security import of_settings
from common.http.serving import runner_of, serve_on
from millstream.testing.certificates import CertificateAuthority

HALF = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


async def ready() -> list[str]:
    return []


def run(folder: Path, check: Callable[[int, ssl.SSLContext], Awaitable[None]]) -> None:
    authority = CertificateAuthority(folder)
    issued = authority.issue("server", ("localhost",))
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(issued.keystore)}

    async def within() -> None:
        app = build_app(CollectorRegistry(), ready)
        runner = runner_of(app, 1, of_settings(settings, "the test"))
        await runner.setup()
        await serve_on(runner, "127.0.0.1", 0)
        context = ssl.create_default_context(cafile=str(authority.certificate))
        try:
            async with asyncio.timeout(60):
                await check(runner.addresses[0][1], context)
        finally:
            await runner.cleanup()

    asyncio.run(within())


def test_half_handshakes_give_way_to_new_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "MAX_HANDSHAKES", 3)
    monkeypatch.setattr(accepting, "SLOW_HANDSHAKE_SECONDS", 0.1)

    async def check(port: int, context: ssl.SSLContext) -> None:
        half = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for each in half:
            each.sendall(HALF)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname="localhost"
        )
        writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in await reader.readline()
        writer.close()
        for each in half[:17]:
            each.setblocking(False)
            assert await asyncio.get_running_loop().sock_recv(each, 100) == b""
        for each in half:
            each.close()

    run(tmp_path, check)


def test_half_handshakes_that_arrive_together_do_not_pass_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "MAX_HANDSHAKES", 3)
    monkeypatch.setattr(accepting, "SLOW_HANDSHAKE_SECONDS", 0.0)
    opening: list[int] = []
    take = accepting.ProtocolServer._take

    def counted(self: accepting.ProtocolServer, accepted: socket.socket, address: str) -> None:
        take(self, accepted, address)
        opening.append(len(self._opening))

    monkeypatch.setattr(accepting.ProtocolServer, "_take", counted)

    async def check(port: int, _: ssl.SSLContext) -> None:
        # All are in the system's queue before the server looks at the first.
        half = [socket.create_connection(("127.0.0.1", port)) for _ in range(12)]
        for each in half:
            each.sendall(HALF)
        while len(opening) < len(half):
            await asyncio.sleep(0.01)
        for each in half:
            each.close()

    run(tmp_path, check)
    assert max(opening) <= 3


def test_what_ended_handshakes_held_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "MAX_HANDSHAKES", 4)
    collected: list[int] = []
    monkeypatch.setattr(accepting, "_collect", lambda: collected.append(1))

    async def check(port: int, _: ssl.SSLContext) -> None:
        for _ in range(9):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"no handshake\r\n\r\n")
            with suppress(ConnectionError):
                await reader.read()
            writer.close()

    run(tmp_path, check)
    assert len(collected) == 2


def test_a_handshake_that_is_never_finished_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "HANDSHAKE_SECONDS", 0.3)

    async def check(port: int, _: ssl.SSLContext) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HALF)
        with suppress(ConnectionError):
            await reader.read()
        writer.close()

    run(tmp_path, check)
