"""Turns are bounded in time: whoever has sent thousands of requests does not keep out who sent one.

Time stands still but for what a request is said to take.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker.server.network.buffers import SHARED_BYTES
from broker.server.network.connection import Connection
from broker.server.network.later import Later
from broker.server.network.turns import ROUND_SECONDS, TURN_SECONDS, Shared, Turns
from tests.broker.server.network.test_connection import Client, EchoSink, connected, framed, run

POLITE = b"polite 1"


class SlowSink(EchoSink):
    """Takes time for every frame, in steps for one that starts with "walk"."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.passed = 0.0
        self.waiting: list[Later] = []

    def now(self) -> float:
        return self.passed

    def on_frame(self, connection: Connection, frame: memoryview) -> Any:
        if bytes(frame[:4]) == b"walk":
            return self.walk(frame)
        if bytes(frame[:4]) == b"wait":
            self.connection = connection
            return self.wait(frame)
        self.passed += self.seconds
        return super().on_frame(connection, frame)

    def wait(self, frame: memoryview) -> Iterator[Any]:
        self.waiting.append(Later(holds=True))
        yield self.waiting[-1]
        content = bytes(frame)
        self.frames.append(content)
        return [framed(content)]

    def walk(self, frame: memoryview) -> Iterator[None]:
        for _ in range(int(bytes(frame[4:8]))):
            self.passed += self.seconds
            yield
        content = bytes(frame)
        self.frames.append(content)
        return [framed(content)]


@asynccontextmanager
async def two_clients(shared: Shared, sink: SlowSink) -> AsyncIterator[tuple[Client, Client]]:
    async with (
        connected(shared, sink) as (greedy, _, _),
        connected(shared, sink) as (polite, _, _),
    ):
        yield greedy, polite


def numbered(count: int) -> list[bytes]:
    return [b"%08d" % number for number in range(count)]


async def answers(client: Client, count: int) -> list[bytes]:
    return [await client.receive() for _ in range(count)]


def test_others_come_in_between_the_requests_of_a_greedy_client() -> None:
    async def scenario() -> None:
        sink = SlowSink(TURN_SECONDS / 2)
        shared = Shared.of(asyncio.get_running_loop(), sink.now)
        async with two_clients(shared, sink) as (greedy, polite):
            frames = numbered(100)
            greedy.send_at_once(b"".join(map(framed, frames)))
            polite.send_at_once(framed(POLITE))
            assert await polite.receive() == POLITE
            assert sink.frames.index(POLITE) <= 4
            assert await answers(greedy, 100) == frames

    run(scenario)


def test_a_request_that_alone_takes_longer_than_a_turn_is_one_turn() -> None:
    async def scenario() -> None:
        sink = SlowSink(10 * TURN_SECONDS)
        shared = Shared.of(asyncio.get_running_loop(), sink.now)
        async with two_clients(shared, sink) as (greedy, polite):
            greedy.send_at_once(b"".join(map(framed, numbered(10))))
            polite.send_at_once(framed(POLITE))
            assert await polite.receive() == POLITE
            assert sink.frames.index(POLITE) <= 2
            assert await answers(greedy, 10) == numbered(10)

    run(scenario)


def test_others_come_in_between_the_steps_of_a_request_and_its_answer_keeps_its_place() -> None:
    async def scenario() -> None:
        sink = SlowSink(TURN_SECONDS / 2)
        shared = Shared.of(asyncio.get_running_loop(), sink.now)
        async with two_clients(shared, sink) as (greedy, polite):
            frames = [b"before 1", b"walk1000", b"behind 1", b"walk   1", b"behind 2"]
            greedy.send_at_once(b"".join(map(framed, frames)))
            polite.send_at_once(framed(POLITE))
            assert await polite.receive() == POLITE
            assert sink.frames == [b"before 1", POLITE]
            assert await answers(greedy, 5) == frames

    run(scenario)


@pytest.mark.parametrize("size", [2_000, SHARED_BYTES + 1_000])
def test_what_a_request_in_steps_holds_on_to_is_not_overwritten_by_others(size: int) -> None:
    async def scenario() -> None:
        sink = SlowSink(TURN_SECONDS)
        shared = Shared.of(asyncio.get_running_loop(), sink.now)
        async with two_clients(shared, sink) as (greedy, polite):
            frame = b"walk 100" + bytes(range(200)) * (size // 200)
            await greedy.send(framed(frame))
            for _ in range(3):
                await polite.send(framed(POLITE * (len(frame) // 8)))
                assert len(await polite.receive()) == len(frame) // 8 * 8
            assert await greedy.receive() == frame

    run(scenario)


def test_a_client_that_goes_away_takes_its_request_along() -> None:
    async def scenario() -> None:
        sink = SlowSink(TURN_SECONDS)
        shared = Shared.of(asyncio.get_running_loop(), sink.now)
        async with connected(shared, sink) as (greedy, _, connection):
            greedy.send_at_once(framed(b"walk9999") + framed(b"behind 1"))
            for _ in range(3):
                await asyncio.sleep(0)
            connection.close()
            passed = sink.passed
            for _ in range(10):
                await asyncio.sleep(0)
            assert sink.passed == passed
            assert sink.frames == []

    run(scenario)


def test_a_round_ends_early_so_that_the_sockets_are_looked_at() -> None:
    scheduled: list[Any] = []
    loop: Any = type("Loop", (), {"call_soon": staticmethod(scheduled.append)})
    passed = 0.0
    turns = Turns(loop, lambda: passed)
    taken: list[int] = []

    def take(number: int) -> None:
        nonlocal passed
        passed += ROUND_SECONDS / 2
        taken.append(number)

    for number in range(5):
        turns.wait(lambda number=number: take(number))
    scheduled.pop()()
    assert taken == [0, 1]
    scheduled.pop()()
    assert taken == [0, 1, 2, 3]
    scheduled.pop()()
    assert taken == [0, 1, 2, 3, 4]
    assert scheduled == []


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_request_that_holds_its_connection_takes_no_turns_and_keeps_back_what_was_sent_after_it(
    is_gone: bool,
) -> None:
    async def scenario() -> None:
        sink = SlowSink(0.0)
        shared = Shared.of(asyncio.get_running_loop(), sink.now)
        async with two_clients(shared, sink) as (greedy, polite):
            await greedy.send(framed(b"wait 1  ") + framed(b"after 2 "))
            await polite.send(framed(POLITE))
            assert await polite.receive() == POLITE
            assert sink.frames == [POLITE]
            assert not shared.turns._waiting
            (go_on,) = sink.waiting
            if is_gone:
                sink.connection.close()
                go_on.done()
                await asyncio.sleep(0)
                assert sink.frames == [POLITE]
                return
            go_on.done()
            assert [await greedy.receive() for _ in range(2)] == [b"wait 1  ", b"after 2 "]

    run(scenario)


@pytest.mark.parametrize("comes_meanwhile", [False, True])
def test_reading_stops_for_a_request_that_holds_only_when_something_comes(
    comes_meanwhile: bool,
) -> None:
    async def scenario() -> None:
        sink = SlowSink(0.0)
        shared = Shared.of(asyncio.get_running_loop(), sink.now)
        async with two_clients(shared, sink) as (client, polite):
            await client.send(framed(b"wait 1  "))
            await polite.send(framed(POLITE))
            assert await polite.receive() == POLITE
            assert sink.connection._is_reading
            if comes_meanwhile:
                await client.send(framed(b"after 2 "))
                while sink.connection._is_reading:
                    await asyncio.sleep(0)
            (go_on,) = sink.waiting
            go_on.done()
            assert await client.receive() == b"wait 1  "
            if comes_meanwhile:
                assert await client.receive() == b"after 2 "
            assert sink.connection._is_reading

    run(scenario)
