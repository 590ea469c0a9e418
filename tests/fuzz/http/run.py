"""The fuzzer against real HTTP servers, with a well-behaved client beside it, and a verdict.

A run is clean if the process lives, logged no stack trace, never answered 500, computed for less
than `MAX_BLOCK_SECONDS` while the client waited, and grew by less than `MAX_GROWTH_BYTES`. All the
while some connections are held that send nothing, half a head or half a body.
"""

import socket
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from millstream.testing.local_program import LocalProgram
from tests.fuzz.http.neighbour import Neighbour, resident_bytes
from tests.fuzz.http.requests import VALID, mutated, written_as
from tests.fuzz.http.servers import CONNECT, REST_PROXY, running

MAX_BLOCK_SECONDS = 0.2
MAX_GROWTH_BYTES = 150 << 20
HELD = 60
SUSPECTS = 30
REQUESTS_AT_ONCE = 12
ANSWER_SECONDS = 0.2
SIGNS_OF_A_BUG = ("Traceback (most recent call last)", " CRITICAL ")
REFUSES_WITH_500 = {CONNECT}
"""Kafka Connect answers 500 when a connector refuses offsets. A bug is also a stack trace here."""
ASKED = {CONNECT: "/connectors", REST_PROXY: "/topics"}
"""What the well-behaved client asks for, elsewhere whether the server lives."""


@dataclass
class Verdict:
    """The result of a run against one server."""

    name: str
    seed: int
    requests: int = 0
    rounds: int = 0
    longest_wait_seconds: float = 0.0
    longest_block_seconds: float = 0.0
    growth_bytes: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    suspects: list[bytes] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{self.name}, seed {self.seed}: {self.requests} requests, "
            f"{dict(sorted(self.statuses.items()))}",
            f"  well-behaved client: {self.rounds} rounds, the longest took "
            f"{self.longest_wait_seconds * 1000:.0f} ms; the server computed for at most "
            f"{self.longest_block_seconds * 1000:.0f} ms of one; "
            f"memory grew by {self.growth_bytes >> 20} MB",
            *self.problems,
            *(f"  sent: {each[:3000]!r}" for each in (self.suspects if self.problems else [])),
            "  clean" if not self.problems else "  NOT CLEAN",
        ]
        return "\n".join(lines)


def fuzz_http(names: Sequence[str], seed: int, seconds: float) -> list[Verdict]:
    """Fuzz servers one after the other, each for its part of `seconds`."""
    with running(names) as programs:
        return [
            _Run(name, program, seed).go(seconds / len(programs))
            for name, program in programs.items()
        ]


class _Run:
    def __init__(self, name: str, program: LocalProgram, seed: int) -> None:
        self._program = program
        self._random = Random(seed)
        self._held: deque[socket.socket] = deque()
        self._suspects: deque[bytes] = deque(maxlen=SUSPECTS)
        self._neighbour = Neighbour(program.port, program.pid, ASKED.get(name, "/health/live"))
        self.verdict = Verdict(name, seed)

    def go(self, seconds: float) -> Verdict:
        before = resident_bytes(self._program.pid)
        self._neighbour.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.verdict.problems:
            self._hold()
            requests = self._random.choices(VALID[self.verdict.name], k=REQUESTS_AT_ONCE)
            self._send([mutated(each, self._random) for each in requests])
            self._look(before)
        self._neighbour.stop()
        self._look(before)
        while self._held:
            self._held.pop().close()
        self.verdict.suspects = list(self._suspects)
        return self.verdict

    def _hold(self) -> None:
        """Keep one more connection that sends part of a request, and let the oldest go."""
        whole = written_as(self._random.choice(VALID[self.verdict.name]))
        held = socket.create_connection(("127.0.0.1", self._program.port), 5)
        self._held.append(held)
        with suppress(OSError):
            held.sendall(whole[: self._random.randrange(len(whole))])
        if len(self._held) > HELD:
            self._held.popleft().close()

    def _send(self, requests: list[bytes]) -> None:
        """Send each request on a connection of its own, all at once; then read the answers."""
        opened: list[socket.socket] = []
        for data in requests:
            self._suspects.append(data)
            self.verdict.requests += 1
            with suppress(OSError):
                opened.append(socket.create_connection(("127.0.0.1", self._program.port), 5))
                opened[-1].settimeout(ANSWER_SECONDS)
                opened[-1].sendall(data)
        for each in opened:
            status = _status(each)
            self.verdict.statuses[status] += 1
            each.close()

    def _look(self, before: int) -> None:
        """Check the server for a problem."""
        verdict, neighbour = self.verdict, self._neighbour
        verdict.rounds = neighbour.rounds
        verdict.longest_wait_seconds = neighbour.longest_seconds
        verdict.longest_block_seconds = neighbour.most_computed_seconds
        log = self._program.log_tail()
        problems = [sign for sign in SIGNS_OF_A_BUG if sign in log]
        if problems:
            problems.append(log[max(0, log.index(problems[0]) - 300) :][:4000])
        now = resident_bytes(self._program.pid)
        verdict.growth_bytes = max(verdict.growth_bytes, now - before)
        if now == 0:
            problems.append(f"the process has ended:\n{log[-3000:]}")
        if verdict.growth_bytes > MAX_GROWTH_BYTES:
            problems.append(f"memory has grown by {verdict.growth_bytes >> 20} MB")
        if neighbour.most_computed_seconds >= MAX_BLOCK_SECONDS:
            problems.append(f"the server computed {neighbour.most_computed_seconds:.2f} s of one")
        if verdict.statuses["500"] and verdict.name not in REFUSES_WITH_500:
            problems.append("a request was answered 500")
        if neighbour.problem is not None:
            problems.append(neighbour.problem)
        verdict.problems += problems


def _status(connection: socket.socket) -> str:
    """Return the status of an answer, or why there is none."""
    try:
        head = connection.recv(64)
    except TimeoutError:
        return "none yet"
    except OSError:
        return "closed"
    return head[9:12].decode("latin-1") if head.startswith(b"HTTP/1.") else "closed"
