"""The states of a connection: only the combinations of the table occur.

Clients send what a seeded draw says, in parts of any size, and read or do not read; handlers answer
at once, in steps, later, and hold their connection or do not. After every turn of the loop the
connection is compared with the table at the top of `connection`.
"""

import asyncio
import struct
from collections import deque
from random import Random
from typing import Any

import pytest

from broker.server.network import connection as module
from broker.server.network.connection import Connection, State
from broker.server.network.later import Later
from broker.server.network.turns import Shared
from tests.broker.server.network.test_connection import EchoSink, connected, framed, run

SEEDS = 30
KINDS = (b"at once!", b"in steps", b"later   ", b"held    ", b"nothing!")
MAX_IN_FLIGHT, MAX_UNSENT = 5, 20_000


def validate(connection: Connection) -> None:
    """Compare a connection that is between two turns with the table."""
    making, backlog = connection._making, connection._backlog
    match connection.state:
        case State.READING:
            assert making is None
            assert backlog is None
            assert connection._is_reading
            assert not connection._is_watched
        case State.MAKING:
            assert making is not None
            assert making.awaited is None
        case State.HELD:
            assert making is not None
            assert making.awaited is not None
            assert making.awaited.holds
            assert connection._is_reading or connection._is_watched
        case State.BEHIND:
            assert making is None
            assert backlog is not None
            assert connection._is_queued
        case State.FULL:
            assert making is None
            assert not connection._is_reading
            is_behind = len(connection.places) >= MAX_IN_FLIGHT
            assert is_behind or connection._unsent.size_bytes > MAX_UNSENT
            assert connection._is_watched == is_behind
        case State.CLOSED:
            assert making is None
            assert backlog is None
            assert not connection.places
            assert not connection._unsent.parts
    assert len(connection.places) <= MAX_IN_FLIGHT
    if connection.state is not State.CLOSED:
        assert connection._unsent.size_bytes == sum(map(len, connection._unsent.parts))


class DrawnSink(EchoSink):
    """Answers in a way that the frame says; what waits is continued when the test wants it."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random
        self.pending: deque[Later] = deque()

    def on_frame(self, connection: Connection, frame: memoryview) -> Any:
        content = bytes(frame)
        match content[:8]:
            case b"at once!":
                return [framed(content)]
            case b"nothing!":
                return None
            case b"in steps":
                return self.in_steps(content)
            case kind:
                return self.wait(content, holds=kind.startswith(b"held"))

    def in_steps(self, content: bytes) -> Any:
        for _ in range(self.random.randrange(4)):
            yield None
        return [framed(content)]

    def wait(self, content: bytes, *, holds: bool) -> Any:
        later = Later(holds=holds)
        self.pending.append(later)
        yield later
        yield from self.in_steps(content)
        return [framed(content)]


def test_only_legal_combinations_occur_and_every_answer_comes_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_REQUESTS_IN_FLIGHT", MAX_IN_FLIGHT)
    monkeypatch.setattr(module, "MAX_UNSENT_BYTES", MAX_UNSENT)
    seen: set[State] = set()
    for seed in range(SEEDS):
        seen |= states_of_a_history(Random(seed))
    assert seen == set(State)


def states_of_a_history(random: Random) -> set[State]:
    seen: set[State] = set()

    async def scenario() -> None:
        sink, passed = DrawnSink(random), 0.0

        def now() -> float:
            nonlocal passed
            passed += random.choice([0.0, 0.0001, 0.001])
            return passed

        shared = Shared.of(asyncio.get_running_loop(), now)
        async with connected(shared, sink) as (client, _, connection):
            frames = [
                random.choice(KINDS) + b"%06d" % number + bytes(random.choice([0, 9, 9_000]))
                for number in range(random.randrange(1, 60))
            ]
            sending = b"".join(map(framed, frames))
            expected = b"".join(framed(each) for each in frames if not each.startswith(b"nothing!"))
            received = bytearray()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            is_cut = random.random() < 0.2
            while len(received) < len(expected) and not connection.is_closed:
                if sending:
                    some = random.randrange(1, 20_000)
                    try:
                        sent = client.end.send(sending[:some])
                        sending = sending[sent:]
                    except BlockingIOError:
                        pass
                if sink.pending and random.random() < 0.3:
                    sink.pending.popleft().done()
                if random.random() < 0.5:
                    try:
                        received += client.end.recv(random.choice([100, 1 << 20]))
                    except BlockingIOError:
                        pass
                if is_cut and random.random() < 0.02:
                    connection.close()
                await asyncio.sleep(0)
                validate(connection)
                seen.add(connection.state)
            assert connection.is_closed or received == expected

    run(scenario)
    return seen


def test_a_size_in_the_middle_of_a_turn_closes() -> None:
    async def scenario() -> None:
        async with connected() as (client, _, connection):
            await client.send(framed(b"12345678") + struct.pack(">i", 3))
            while not connection.is_closed:
                await asyncio.sleep(0)
            validate(connection)

    run(scenario)
