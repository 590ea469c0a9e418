"""Opening a connection to an address that another node has named, which may be anything."""

import asyncio
import socket

import pytest

from broker.server.network.dialing import Dial, Dialled

WHOLE_SECONDS = 30


def dial(host: str, port: int) -> Dialled:
    async def one() -> Dialled:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Dialled] = loop.create_future()
        Dial(loop, (host, port), WHOLE_SECONDS * 1000, done.set_result)
        return await asyncio.wait_for(done, WHOLE_SECONDS / 2)

    return asyncio.run(one())


@pytest.mark.parametrize(
    "host",
    [
        "\0",
        "a\0b",
        "x" * 5_000,
        "é" * 60,
        "a..b",
        ".a",
        "\ud800",
        "a b",
        "",
        "127.0.0.1\n",
        "[::1]",
    ],
    ids=ascii,
)
def test_a_host_that_is_none_cannot_be_reached(host):
    # The empty host is this machine, as in every program: there no process has the port.
    assert isinstance(dial(host, 1), OSError)


def test_a_process_that_listens_is_reached():
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = dial("127.0.0.1", server.getsockname()[1])
        assert isinstance(found, socket.socket)
        found.close()


def test_a_port_without_a_process_refuses():
    assert isinstance(dial("127.0.0.1", 1), ConnectionRefusedError)
