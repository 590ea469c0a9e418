"""The child processes of a demo or a stack: start them, wait until they are ready, stop them.

A child reports that it is ready with one line on standard output, `millstream <name> ready on
<address>`. All its output goes to a log file; without one, to standard error behind the child's
name. Children run in their own sessions, so Ctrl-C reaches only the parent, which stops them in
order. On Linux the kernel ends them if the parent is killed. On Linux they are also forked from
processes that have loaded the modules of a broker or of the services: they start sooner and share
the memory of these modules.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import IO, Any, Protocol

from millstream.launch import program_command, program_environment
from millstream.processes.forked_process import (
    BROKERS,
    CAN_FORK,
    SERVICES,
    ForkedProcess,
    ForkServer,
)

_READY_SECONDS = 180.0
_STOP_SECONDS = 10.0
_TAIL_LINES = 20
_MAX_REVIVALS = 5
"""The number of restarts in a row, without `_SERVED_SECONDS` of service in between."""
_SERVED_SECONDS = 5.0
_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 15.0


class ChildDiedError(Exception):
    """A child ended by itself; the message contains the end of its log."""


class Running(Protocol):
    """A process, with the interface of `asyncio.subprocess.Process`."""

    @property
    def pid(self) -> int:
        """The process id."""

    @property
    def stdout(self) -> asyncio.StreamReader | None:
        """The standard output."""

    @property
    def returncode(self) -> int | None:
        """The exit status; None while it runs."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""

    async def wait(self) -> int:
        """Wait for the end and return the exit status."""


class _Forked:
    """A forked process, for a parent with an event loop."""

    def __init__(self, process: ForkedProcess, stdout: asyncio.StreamReader) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._has_ended = asyncio.Event()
        self._loop.add_reader(process.status, self._on_end)
        self.pid = process.pid
        self.stdout = stdout

    def _on_end(self) -> None:
        if not self._has_ended.is_set():
            self._loop.remove_reader(self._process.status)
            self._process.poll()
            self._has_ended.set()

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        self._process.send_signal(number)
        if self._process.returncode is not None:
            self._on_end()  # It was told the end, so the loop will not hear it.

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        await self._has_ended.wait()
        return self._process.wait()


class Child:
    """One program running as a process."""

    server: ForkServer = SERVICES
    """The fork server of the program, unless it is a broker."""
    is_kept = False
    """Whether it is restarted without limit, with increasing pauses."""

    def __init__(
        self,
        name: str,
        log_file: Path | None,
        *,
        is_revived: bool = False,
        environment: Mapping[str, str] | None = None,
        stop_seconds: float = _STOP_SECONDS,
    ) -> None:
        self.name = name
        self._environment = {**_environment(), **(environment or {})}
        self._stop_seconds = stop_seconds
        self.address = ""
        self._is_revived = is_revived or self.is_kept
        self._revivals_left = _MAX_REVIVALS
        self._ready_at: float | None = None
        self._log_file = log_file
        self._process: Running | None = None
        self._stopped: Running | None = None
        """The last process that was to stop: its end is no death."""
        self._command: tuple[str, ...] = ("",)
        self._paused_pid: int | None = None
        self._is_wanted = asyncio.Event()
        self._is_wanted.set()

    async def start(
        self, module: str, *arguments: str, ready_seconds: float | None = _READY_SECONDS
    ) -> None:
        """Start the program and return when it is ready; without a limit if that is None."""
        self._command = (module, *arguments)
        self._process = await self._launch(module, *arguments)
        try:
            async with asyncio.timeout(ready_seconds):
                await self._read_ready_line()
        except TimeoutError:
            raise ChildDiedError(f"{self.name} was not ready in time\n{self._tail()}") from None

    async def _launch(self, module: str, *arguments: str) -> Running:
        with self._opened_log() as log:
            if not CAN_FORK:
                return await asyncio.create_subprocess_exec(
                    *program_command(module, *arguments),
                    env=self._environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                )
            server = BROKERS if module == "broker" else self.server
            process = await asyncio.to_thread(
                server.start, module, arguments, self._environment, log, is_bound=True
            )
        process.stdin.close()
        stdout = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stdout), process.stdout
        )
        return _Forked(process, stdout)

    async def _read_ready_line(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self._hear(line)
            if self.address:
                return
        self._ready_at = None
        raise await self._death()

    def _hear(self, line: bytes) -> None:
        self._append(line)
        _, found, address = line.decode().partition(" ready on ")
        if found:
            # Other information may follow the address.
            self.address = address.split()[0]
            self._ready_at = time.monotonic()

    async def watch(self) -> None:
        """Restart the child when it ends, if it is revived; otherwise raise. Never return.

        A restarted child has no time limit to be ready: its broker may be restarting as well.
        """
        while True:
            assert self._process is not None
            assert self._process.stdout is not None
            while line := await self._process.stdout.readline():
                self._hear(line)
            death = await self._death()
            if self._process is self._stopped:
                self._ready_at = None
                # `start_again` may have been called already.
                await self._is_wanted.wait()
            elif not self._may_be_revived(time.monotonic()):
                raise death
            elif self.is_kept:
                await asyncio.sleep(self._pause_seconds())
            ended = f"ended with status {self._process.returncode}"
            self._append(f"{ended}, started again\n".encode())
            self._ready_at = None
            self._process = await self._launch(*self._command)
            if self.is_stopped:  # It was stopped while it was launched.
                self._stopped = self._process
                with suppress(ProcessLookupError):
                    self._process.kill()

    def _may_be_revived(self, now: float) -> bool:
        """Return whether the child may be restarted: not for ever if it ends each time."""
        if self._ready_at is not None and now - self._ready_at >= _SERVED_SECONDS:
            self._revivals_left = _MAX_REVIVALS
        self._revivals_left -= 1
        return self._is_revived and (self.is_kept or self._revivals_left >= 0)

    def _pause_seconds(self) -> float:
        """Return the pause before the restart, which grows with each death."""
        deaths = _MAX_REVIVALS - self._revivals_left
        return float(min(_MAX_PAUSE_SECONDS, _PAUSE_SECONDS * 2 ** min(deaths, 10)))

    @property
    def is_ready(self) -> bool:
        """Whether the child has reported that it is ready, and runs."""
        return self._ready_at is not None and self.is_running

    @property
    def is_running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    @property
    def is_stopped(self) -> bool:
        """Whether the child is not to run before `start_again`."""
        return not self._is_wanted.is_set()

    @property
    def has_started(self) -> bool:
        """Whether the process was ever started."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """The process id; None if no process runs."""
        return self._process.pid if self._process is not None and self.is_running else None

    async def _death(self) -> ChildDiedError:
        assert self._process is not None
        status = await self._process.wait()
        return ChildDiedError(f"{self.name} ended with status {status}\n{self._tail()}")

    async def stop_until_wanted(self, *, is_killed: bool = False) -> None:
        """End the process, with SIGKILL if `is_killed`; `watch` waits for `start_again`."""
        self._is_wanted.clear()
        self._stopped = self._process
        if is_killed and self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
        await self.stop()

    @property
    def is_paused(self) -> bool:
        """Whether the process stands still, as after SIGSTOP."""
        return self._paused_pid is not None and self._paused_pid == self.pid

    def pause(self, *, is_paused: bool) -> None:
        """Have the process stand still, or go on: it keeps its connections, and answers nothing."""
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGSTOP if is_paused else signal.SIGCONT)
        self._paused_pid = self._process.pid if is_paused else None

    def start_again(self) -> None:
        """Start a child that was stopped."""
        self._is_wanted.set()

    async def stop(self) -> None:
        """End the process with SIGTERM, and with SIGKILL if it does not end in time."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if self.is_paused:
            self.pause(is_paused=False)  # It would not receive SIGTERM.
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(self._stop_seconds):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _opened_log(self) -> IO[bytes]:
        """Return what the child writes to: its log file, or a pipe whose lines are shown."""
        if self._log_file is not None:
            return self._log_file.open("ab")
        reader, writer = os.pipe()
        Thread(target=self._show, args=(os.fdopen(reader, "rb"),)).start()
        return os.fdopen(writer, "wb")

    def _show(self, lines: IO[bytes]) -> None:
        """Show lines until the child ends: this process waits for the last ones."""
        with lines:
            for line in lines:
                self._append(line)

    def _append(self, line: bytes) -> None:
        if self._log_file is None:
            sys.stderr.write(f"{self.name} | {line.decode(errors='replace')}")
            return
        with self._log_file.open("ab") as log:
            log.write(line)

    def _tail(self) -> str:
        if self._log_file is None:
            return ""
        lines = self._log_file.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
        return "\n".join([f"--- end of {self._log_file}", *lines])


class Children:
    """All children in levels: children of a level depend on those of the lower levels."""

    def __init__(self, log_folder: Path) -> None:
        self.environment: dict[str, str] = {}
        """Variables that every child gets."""
        self.own_environment: Callable[[str], Mapping[str, str]] = lambda _: {}
        """Returns the variables of one child, by its name."""
        self._log_folder = log_folder
        self._levels: list[list[Child]] = [[]]
        self._ready: list[Child] = []
        self._has_more = asyncio.Event()

    def named(self, names: Iterable[str]) -> dict[str, Child]:
        """Return the children with these names, of those that were started."""
        found = {child.name: child for level in self._levels for child in level}
        return {name: found[name] for name in names if name in found}

    def begin_level(self) -> None:
        """Begin a level: children that are started later depend on those started before."""
        self._levels.append([])

    async def start(
        self,
        name: str,
        module: str,
        *arguments: str,
        ready_seconds: float = _READY_SECONDS,
        **options: Any,
    ) -> Child:
        """Start a program and return when it is ready; the options are those of `Child`.

        A child with `is_revived` is restarted when it dies.
        """
        self._log_folder.mkdir(parents=True, exist_ok=True)
        log_file = self._log_folder / f"{name}.log"
        log_file.unlink(missing_ok=True)
        own = {**self.own_environment(name), **options.pop("environment", {})}
        environment = {**self.environment, **own}
        child = Child(name, log_file, environment=environment, **options)
        self._levels[-1].append(child)
        await child.start(module, *arguments, ready_seconds=ready_seconds)
        self._ready.append(child)
        self._has_more.set()
        return child

    async def watch(self) -> None:
        """Raise ChildDiedError as soon as a child ends for good, also one that is started later."""
        watching: list[asyncio.Future[Any]] = []
        try:
            while True:
                self._has_more.clear()
                new = self._ready[len(watching) :]
                watching += (asyncio.ensure_future(child.watch()) for child in new)
                more: asyncio.Future[Any] = asyncio.ensure_future(self._has_more.wait())
                try:
                    await asyncio.wait([more, *watching], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    more.cancel()
                for task in watching:
                    if task.done():
                        task.result()
        finally:
            for task in watching:
                task.cancel()

    async def stop(self) -> None:
        """Stop all children, the lowest level last."""
        for level in reversed(self._levels):
            await asyncio.gather(*(child.stop() for child in level))


def _environment() -> dict[str, str]:
    """Return the environment without variables that would configure the child's broker."""
    return {
        name: value
        for name, value in program_environment().items()
        if not name.startswith(("KAFKA_", "MILLSTREAM_"))
    }
