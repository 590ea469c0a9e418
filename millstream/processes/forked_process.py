"""Processes that a fork server starts, with an interface like `subprocess`."""

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

from millstream.launch import program_command
from millstream.processes.fork_server import STATUS, Job

CAN_FORK = sys.platform == "linux"
"""Elsewhere, what a system's own libraries have begun may not be forked."""
LOST_STATUS = 255
"""The status of a process whose end is unknown, because its server has ended."""
END_SECONDS = 10.0


class ForkedProcess:
    """The part of `subprocess.Popen`, with pipes for input and output, that nodes need."""

    def __init__(self, pid: int, stdin: IO[str], stdout: IO[str], status: int) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.returncode: int | None = None
        self.status = status
        """A descriptor that becomes readable when the process has ended."""

    def poll(self) -> int | None:
        """Return the exit status; None while the process runs."""
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status; raise subprocess.TimeoutExpired."""
        status = self._look(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal unless the process has ended."""
        if self.poll() is None:
            # The message about its end may still be on its way.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _look(self, seconds: float | None) -> int | None:
        if self.returncode is None:
            poll = select.poll()
            poll.register(self.status, select.POLLIN)
            if poll.poll(None if seconds is None else 1000 * seconds):
                told = os.read(self.status, STATUS.size)
                self.returncode = STATUS.unpack(told)[0] if told else LOST_STATUS
                os.close(self.status)
        return self.returncode


class ForkServer:
    """Starts processes with some modules loaded; the first start also starts the fork server."""

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = modules
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._jobs: socket.socket | None = None
        self._owner = 0

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stderr: IO[str] | IO[bytes],
        *,
        is_bound: bool = False,
        temporary_folder: str = "",
    ) -> ForkedProcess:
        """Start a module like `python -m`; raise OSError if that fails.

        With `is_bound` the process is killed when this process ends. If `temporary_folder` exists
        when this process ends, even by a kill, it is removed and the started process is killed.
        """
        job = Job(
            module,
            list(arguments),
            dict(environment),
            _current_folder(),
            is_bound,
            temporary_folder,
        )
        (stdin, stdin_end), (stdout_end, stdout), (status_end, status) = (
            os.pipe(),
            os.pipe(),
            os.pipe(),
        )
        try:
            pid = self._ask(job, [stdin, stdout, stderr.fileno(), status])
        except BaseException:
            for descriptor in (stdin_end, stdout_end, status_end):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (stdin, stdout, status):
                os.close(descriptor)
        return ForkedProcess(pid, os.fdopen(stdin_end, "w"), os.fdopen(stdout_end), status_end)

    def _ask(self, job: Job, descriptors: list[int]) -> int:
        with self._lock:
            jobs = self._running(job.environment)
            try:
                socket.send_fds(jobs, [job.encode()], descriptors)
                answer = jobs.recv(STATUS.size)
            except ConnectionError:
                answer = b""
            except BaseException:
                # After an interrupt, the next caller must not get this answer.
                self._jobs = None
                jobs.close()
                raise
        if not answer:
            raise ChildProcessError("the fork server has ended: standard error has the reason")
        pid: int = STATUS.unpack(answer)[0]
        return pid

    def _running(self, environment: Mapping[str, str]) -> socket.socket:
        """Return the socket of the server. A forked process has its own server."""
        is_there = self._server is not None and self._server.poll() is None
        if self._jobs is None or not is_there or self._owner != os.getpid():
            if self._jobs is not None:
                self._jobs.close()  # Of a server that has ended, or of the process forked from.
            self._jobs, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._server = subprocess.Popen(
                    program_command(
                        "millstream.processes.fork_server", str(theirs.fileno()), *self._modules
                    ),
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            self._owner = os.getpid()
            atexit.register(self._end, self._server, self._jobs)
        return self._jobs

    def _end(self, server: subprocess.Popen[bytes], jobs: socket.socket) -> None:
        if self._owner == os.getpid():
            jobs.close()
            server.wait(END_SECONDS)


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise FileNotFoundError("the current directory does not exist") from None


BROKERS = ForkServer(("broker.__main__", "broker.cli.start", "uvloop", "broker.server.running"))
SERVICES = ForkServer(("common.processing.runner", "schemas.registry.__main__"))
"""For all programs that serve HTTP and read topics; other modules are loaded later."""
STACK = ForkServer(("schemas.registry.__main__", "rest_proxy.__main__"))
"""For the other programs of a stack; a Connect worker loads its other modules itself."""
