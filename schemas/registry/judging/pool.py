"""A small pool of processes that answer questions; a process that is too slow is killed.

The questions that are answered at a time are limited: one for each client, and a number in all.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from common.process.bounded_cache import BoundedCache
from schemas.registry.judge import refused_as
from schemas.registry.judging.process import LENGTH_BYTES
from schemas.registry.questions import (
    Answer,
    Question,
    answer_from,
    digest,
    size_of,
    to_bytes,
)
from schemas.registry.refusals import too_many_requests
from schemas.registry.turns import Turns


@dataclass(slots=True)
class _Client:
    place: asyncio.Lock = field(default_factory=asyncio.Lock)
    questions: int = 0
    """The questions of one client that are being answered, and those that wait."""


class Places:
    """Counts the questions of each client; a client without questions has no entry."""

    def __init__(self, count: int, *, waiting: int, client_waiting: int, seconds: float) -> None:
        self._places = asyncio.Semaphore(count)
        self._waiting_limit = waiting
        self._client_limit = client_waiting
        self._seconds = seconds
        self._clients: dict[str, _Client] = {}
        self._questions = 0

    @asynccontextmanager
    async def place(self, client: str) -> AsyncIterator[None]:
        """Wait for a place. Raises RegistryError, 429, when too many wait or it takes too long."""
        known = self._clients.setdefault(client, _Client())
        if self._questions >= self._waiting_limit or known.questions >= self._client_limit:
            if not known.questions:
                del self._clients[client]
            raise too_many_requests()
        known.questions += 1
        self._questions += 1
        try:
            async with _within(known.place, self._seconds), _within(self._places, self._seconds):
                yield
        finally:
            self._questions -= 1
            known.questions -= 1
            if not known.questions:
                del self._clients[client]


@asynccontextmanager
async def _within(place: asyncio.Lock | asyncio.Semaphore, seconds: float) -> AsyncIterator[None]:
    try:
        await asyncio.wait_for(place.acquire(), seconds)
    except TimeoutError:
        raise too_many_requests() from None
    try:
        yield
    finally:
        place.release()


_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from schemas.registry.judging.process import main; main(float(sys.argv[1]))"
)
_END_SECONDS: Final = 5.0
_ENTRY_BYTES: Final = 200
"""The approximate size of an entry of the memory without its answer."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the processes and on the questions that wait."""

    processes: int = 2
    answer_seconds: float = 10.0
    """Processor time, so that a busy machine refuses the same schemas as an idle one."""
    wait_seconds: float = 60.0
    idle_seconds: float = 30.0
    waiting: int = 100
    client_waiting: int = 16
    waiting_seconds: float = 60.0
    memory_bytes: int = 8 << 20


class Judges:
    """Answers questions one after the other for each client."""

    def __init__(self, limits: Limits | None = None, turns: Turns | None = None) -> None:
        self.limits = limits or Limits()
        self._turns = turns or Turns()
        self.memory: BoundedCache[bytes, bytes] = BoundedCache(self.limits.memory_bytes)
        """Answers by their questions."""
        self._places = Places(
            self.limits.processes,
            waiting=self.limits.waiting,
            client_waiting=self.limits.client_waiting,
            seconds=self.limits.waiting_seconds,
        )
        self._idle: list[_Process] = []
        self._started: list[_Process] = []
        """The processes whose end is not known."""

    async def answer(self, question: Question, client: str) -> Answer:
        """Return the answer. Raises RegistryError, 429, if the client has to retry."""
        async with self._turns.turn(size_of(question)):
            data = to_bytes(question)
            key = digest(data)
        answer: bytes | str | None = self.memory.get(key)
        if answer is None:
            async with self._places.place(client):
                # Another request of this client may have had the same question.
                answer = self.memory.get(key) or await self._judge(data)
        if isinstance(answer, bytes):
            self.memory.put(key, answer, len(answer) + _ENTRY_BYTES)
            async with self._turns.turn(len(answer)):
                return answer_from(answer)
        log.warning(
            "registry gave up a schema kind=%s bytes=%d reason=%s",
            *(type(question).__name__, len(data), answer),
        )
        return refused_as(str(answer))

    async def _judge(self, data: bytes) -> bytes | str:
        """Return the answer, or a refusal. Raises RegistryError, 429."""
        deaths = 0
        while True:
            is_used = bool(self._idle)
            process = self._idle.pop() if is_used else await self._start()
            process.stay()
            try:
                async with asyncio.timeout(self.limits.wait_seconds):
                    answer = await process.ask(data)
            except TimeoutError:
                # The process has not used its processor time: this machine is too busy.
                process.kill()
                raise too_many_requests() from None
            except (OSError, EOFError):
                if await process.ended() == -signal.SIGPROF:
                    return f"it takes longer than {self.limits.answer_seconds:g} s to check"
                # A process ends by itself between two questions if it has grown large.
                deaths += not is_used
                if deaths > 1:
                    return "the process that checks it dies of it"
            except BaseException:
                process.kill()
                raise
            else:
                self._idle.append(process)
                process.end_when_idle(self.limits.idle_seconds, self._idle.remove)
                return answer

    async def close(self) -> None:
        """End all processes."""
        self._idle.clear()
        while self._started:
            process = self._started.pop()
            process.stay()
            process.kill()
            await process.wait()

    async def _start(self) -> "_Process":
        self._started = [each for each in self._started if not each.has_ended]
        process = await _start(self.limits.answer_seconds)
        self._started.append(process)
        return process


class _Process:
    """One process; it answers one question at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ending: asyncio.TimerHandle | None = None

    async def ask(self, data: bytes) -> bytes:
        """Return the answer. Raises OSError or EOFError when the process is gone."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None, self
        assert stdout is not None, self
        stdin.write(len(data).to_bytes(LENGTH_BYTES, "big") + data)
        await stdin.drain()
        length = await stdout.readexactly(LENGTH_BYTES)
        return await stdout.readexactly(int.from_bytes(length, "big"))

    def end_when_idle(self, seconds: float, forget: "Callable[[_Process], None]") -> None:
        def end() -> None:
            forget(self)
            self.kill()

        self._ending = asyncio.get_running_loop().call_later(seconds, end)

    def stay(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    def kill(self) -> None:
        if not self.has_ended:
            self._process.kill()

    async def wait(self) -> int:
        """Wait for the end; return the status, negative for a signal."""
        return await self._process.wait()

    async def ended(self) -> int:
        """Return the status of a process whose pipes are closed.

        Popen's `kill` polls first, and so can take the status before asyncio's watcher reads it;
        therefore a process that ends by itself is waited for.
        """
        try:
            async with asyncio.timeout(_END_SECONDS):
                return await self.wait()
        except TimeoutError:
            self.kill()
            return await self.wait()


async def _start(answer_seconds: float) -> _Process:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _START, str(answer_seconds), *sys.path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    return _Process(process)
