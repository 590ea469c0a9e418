"""A connection over a socket pair: framing, order of answers, limits, back-pressure."""

import asyncio
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from broker.server.network.buffers import SHARED_BYTES
from broker.server.network.connection import (
    MAX_REQUESTS_IN_FLIGHT,
    MAX_UNSENT_BYTES,
    Connection,
    Peer,
)
from broker.server.network.later import Later
from broker.server.network.turns import Shared

MAX_FRAME_BYTES = 4 * 1024 * 1024


class EchoSink:
    """Answers each frame with itself; a frame that starts with "later" waits for `release`."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.waiting: list[Later] = []
        self.closed = False
        self.answer: Callable[[bytes], bytes] = lambda frame: frame

    def on_frame(self, connection: Connection, frame: memoryview) -> Any:
        content = bytes(frame)
        self.frames.append(content)
        if content.startswith(b"later"):
            return self.later(content)
        return [framed(self.answer(content))]

    def later(self, content: bytes) -> Any:
        self.waiting.append(Later())
        yield self.waiting[-1]
        return [framed(content)]

    def release(self, index: int) -> None:
        self.waiting[index].done()

    def on_closed(self, connection: Connection) -> None:
        self.closed = True


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


class Client:
    def __init__(self, end: socket.socket) -> None:
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter
        self.end = end

    def send_at_once(self, data: bytes) -> None:
        """Put all of it into the socket before the loop turns again."""
        assert self.end.send(data) == len(data)

    async def open(self) -> "Client":
        self.reader, self.writer = await asyncio.open_connection(sock=self.end)
        return self

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> bytes:
        (size,) = struct.unpack(">i", await self.reader.readexactly(4))
        return await self.reader.readexactly(size)


@asynccontextmanager
async def connected(
    shared: Shared | None = None, sink: EchoSink | None = None
) -> AsyncIterator[tuple[Client, EchoSink, Connection]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    sink = sink or EchoSink()
    connection = Connection(
        shared or Shared.of(asyncio.get_running_loop(), time.monotonic),
        ours,
        sink=sink,
        max_frame_bytes=MAX_FRAME_BYTES,
        peer=Peer("127.0.0.1", "PLAINTEXT"),
    )
    client = await Client(theirs).open()
    try:
        yield client, sink, connection
    finally:
        client.writer.close()
        connection.close()


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 20))


def test_a_frame_that_arrives_byte_by_byte_is_answered_once() -> None:
    async def scenario() -> None:
        async with connected() as (client, sink, _):
            for byte in framed(b"12345678"):
                await client.send(bytes([byte]))
                await asyncio.sleep(0)
            assert await client.receive() == b"12345678"
            assert sink.frames == [b"12345678"]

    run(scenario)


@pytest.mark.parametrize("size", [8, 1000, SHARED_BYTES - 4, SHARED_BYTES, 3_000_000])
def test_frames_of_every_size_arrive_whole_and_in_order(size: int) -> None:
    async def scenario() -> None:
        async with connected() as (client, sink, _):
            frames = [bytes([number]) * size for number in range(5)]
            sending = asyncio.ensure_future(client.send(b"".join(map(framed, frames))))
            for frame in frames:
                assert await client.receive() == frame
            await sending
            assert sink.frames == frames

    run(scenario)


@pytest.mark.parametrize("piece", [1, 3, 100])
def test_a_frame_that_is_no_request_may_be_shorter(piece: int) -> None:
    async def scenario() -> None:
        async with connected() as (client, sink, connection):
            connection.min_frame_bytes = 0
            frames = [b"", b"\0a\0b", b"c", b""]
            sent = b"".join(map(framed, frames))
            for start in range(0, len(sent), piece):
                await client.send(sent[start : start + piece])
                await asyncio.sleep(0)
            for frame in frames:
                assert await client.receive() == frame
            assert sink.frames == frames

    run(scenario)


def test_answers_leave_in_the_order_of_the_requests() -> None:
    async def scenario() -> None:
        async with connected() as (client, sink, _):
            await client.send(framed(b"later 01") + framed(b"at once!") + framed(b"later 02"))
            while len(sink.frames) < 3:
                await asyncio.sleep(0)
            sink.release(1)
            sink.release(0)
            assert await client.receive() == b"later 01"
            assert await client.receive() == b"at once!"
            assert await client.receive() == b"later 02"

    run(scenario)


@pytest.mark.parametrize("size", [-1, 0, 7, MAX_FRAME_BYTES + 1, 2**31 - 1, -(2**31)])
def test_a_size_no_request_has_closes_the_connection(size: int) -> None:
    async def scenario() -> None:
        async with connected() as (client, sink, _):
            await client.send(struct.pack(">i", size) + b"GET / HTTP/1.1")
            assert await client.reader.read() == b""
            assert sink.closed
            assert sink.frames == []

    run(scenario)


def test_a_client_that_does_not_read_its_answers_is_not_read_from() -> None:
    async def scenario() -> None:
        async with connected() as (client, sink, connection):
            sink.answer = lambda frame: frame * 10_000
            count = 1000  # 80 MB of answers to 12 KB of requests
            await client.send(framed(b"12345678") * count)
            for _ in range(1000):
                await asyncio.sleep(0)
            assert len(sink.frames) < count
            assert connection._unsent.size_bytes < 2 * MAX_UNSENT_BYTES
            for _ in range(count):
                assert len(await client.receive()) == 80_000
            assert len(sink.frames) == count

    run(scenario)


def test_requests_in_flight_are_limited() -> None:
    async def scenario() -> None:
        async with connected() as (client, sink, _):
            count = MAX_REQUESTS_IN_FLIGHT + 50
            await client.send(framed(b"later xx") * count)
            for _ in range(200):
                await asyncio.sleep(0)
            assert len(sink.frames) == MAX_REQUESTS_IN_FLIGHT
            for number in range(count):
                while len(sink.waiting) <= number:
                    await asyncio.sleep(0)
                sink.release(number)
                assert await client.receive() == b"later xx"

    run(scenario)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_client_that_goes_while_nothing_is_read_is_noticed(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scenario() -> None:
        async with connected() as (client, sink, _):
            await client.send(framed(b"later xx") * (MAX_REQUESTS_IN_FLIGHT + 50))
            while len(sink.frames) < MAX_REQUESTS_IN_FLIGHT:
                await asyncio.sleep(0)
            await client.send(framed(b"unread..") * 100)
            client.writer.close()
            while not sink.closed:
                await asyncio.sleep(0.001)
            assert len(sink.frames) == MAX_REQUESTS_IN_FLIGHT
            sink.release(0)  # too late, and no harm

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(scenario(), 20))


def test_a_client_that_stays_is_read_from_again() -> None:
    async def scenario() -> None:
        async with connected() as (client, sink, _):
            for _ in range(3):
                await client.send(framed(b"later xx") * MAX_REQUESTS_IN_FLIGHT)
                while len(sink.waiting) < MAX_REQUESTS_IN_FLIGHT:
                    await asyncio.sleep(0)
                for number in range(MAX_REQUESTS_IN_FLIGHT):
                    sink.release(number)
                    assert await client.receive() == b"later xx"
                sink.waiting.clear()

    run(scenario)


def test_a_bug_in_a_handler_costs_the_client_its_connection_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with connected() as (client, sink, _):
            sink.answer = lambda frame: bytes(frame[100])
            await client.send(framed(b"12345678"))
            assert await client.reader.read() == b""
            assert sink.closed

    run(scenario)
    assert "request failed" in caplog.text


def test_the_end_of_the_stream_closes_the_connection() -> None:
    async def scenario() -> None:
        async with connected() as (client, sink, _):
            client.writer.write(framed(b"12345678")[:6])
            client.writer.write_eof()
            assert await client.reader.read() == b""
            assert sink.closed

    run(scenario)
