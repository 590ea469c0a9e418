"""TLS over real sockets and a real loop: pieces of all sizes, bytes that are pending, failures."""

import asyncio
import contextlib
import socket
import ssl
from pathlib import Path

import pytest

from broker.server.login.tls_socket import Shaken, TlsHandshake, TlsSocket
from millstream.testing.certificates import CertificateAuthority


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = CertificateAuthority(Path(tmp_path_factory.mktemp("authority")))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(authority.issue("broker").keystore)
    return server, ssl.create_default_context(cafile=str(authority.certificate))


def pair() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
    return ends


def shaking(
    context: ssl.SSLContext, end: socket.socket, *, is_server: bool, seconds: float = 10.0
) -> "asyncio.Future[Shaken]":
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Shaken] = loop.create_future()
    name = None if is_server else "localhost"
    wrapped = context.wrap_socket(
        end, server_side=is_server, server_hostname=name, do_handshake_on_connect=False
    )
    TlsHandshake(loop, wrapped, done.set_result, seconds)
    return done


async def connected(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> tuple[TlsSocket, TlsSocket]:
    ours, theirs = pair()
    shaken = await asyncio.gather(
        shaking(contexts[0], ours, is_server=True), shaking(contexts[1], theirs, is_server=False)
    )
    server, client = shaken
    assert isinstance(server, TlsSocket)
    assert isinstance(client, TlsSocket)
    return server, client


async def send_all(end: TlsSocket, parts: list[bytes]) -> None:
    data = b"".join(parts)
    left = memoryview(data)
    while left:
        try:
            left = left[end.sendmsg([left[:10], left[10:]]) :]
        except BlockingIOError:
            await asyncio.sleep(0)


async def receive(end: TlsSocket, count: int, piece: int) -> bytes:
    loop, received = asyncio.get_running_loop(), bytearray()
    woken = asyncio.Event()
    end.on_pending = woken.set
    loop.add_reader(end.fileno(), woken.set)
    try:
        while len(received) < count:
            target = bytearray(piece)
            try:
                received += target[: end.recv_into(target)]
            except BlockingIOError:
                pass
            if len(received) < count:
                await woken.wait()
                woken.clear()
    finally:
        loop.remove_reader(end.fileno())
    return bytes(received)


@pytest.mark.parametrize("piece", [7, 16_384, 200_000])
def test_every_byte_arrives_in_pieces_of_any_size(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], piece: int
) -> None:
    data = bytes(range(256)) * (4 if piece == 7 else 1500)

    async def run() -> bytes:
        server, client = await connected(contexts)
        with contextlib.closing(server), contextlib.closing(client):
            async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(receive(server, len(data), piece))
                tasks.create_task(send_all(client, [data]))
            return reading.result()

    assert asyncio.run(run()) == data


def test_the_end_of_the_stream_is_zero_bytes_and_a_read_too_early_blocks(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async def run() -> None:
        server, client = await connected(contexts)
        with pytest.raises(BlockingIOError):
            server.recv_into(bytearray(10))
        client.close()
        await asyncio.sleep(0)
        assert server.recv_into(bytearray(10)) == 0
        server.close()

    asyncio.run(run())


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x10\0\x12\0\0\0\0\0\1\0\1a"])
def test_a_client_that_speaks_no_tls_fails(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], said: bytes
) -> None:
    async def run() -> Shaken:
        ours, theirs = pair()
        done = shaking(contexts[0], ours, is_server=True)
        theirs.send(said)
        with contextlib.closing(theirs):
            return await done

    assert isinstance(asyncio.run(run()), OSError)


def test_a_client_that_says_nothing_is_given_up(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async def run() -> Shaken:
        ours, theirs = pair()
        with contextlib.closing(theirs):
            return await shaking(contexts[0], ours, is_server=True, seconds=0.01)

    assert isinstance(asyncio.run(run()), TimeoutError)
