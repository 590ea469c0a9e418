"""A process that has loaded a program's modules and forks, so that the program starts faster.

`python -P -m millstream.processes.fork_server SOCKET MODULE ...` loads the modules, then takes jobs
from the socket with that descriptor until it is closed. Loading takes nine tenths of a node's
start. A job (`Job`) comes with four descriptors: standard input, output and error of the new
process, and one to which the server writes the exit status, as `subprocess` would return it. The
answer is the process id.

Python's own fork server (`multiprocessing`) runs functions of its client and imports the client's
main module first. A program needs its own arguments, environment and standard streams.

The client is `forked_process`. The server belongs to the client's process and ends with it; so do
the started processes that are bound to it. The other processes run until they are told to stop.
Temporary folders that the client has not removed by its end are removed, and their users killed.
"""

import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import NamedTuple

from setproctitle import getproctitle, setproctitle

from millstream.processes.abandoned_folders import TemporaryFolders, remove_after_end

MAX_JOB_BYTES = 1024 * 1024
"""More than a socket takes as one message: nothing is cut off."""
DESCRIPTORS_PER_JOB = 4
STATUS = struct.Struct("=i")
_PR_SET_PDEATHSIG = 1
_CREDENTIALS = struct.Struct("3i")
"""A process id, a user id and a group id."""


class Job(NamedTuple):
    """What is started: a module with arguments, as by `python -m`."""

    module: str
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    """Its working directory."""
    is_bound: bool
    """Whether it is killed when the server ends."""
    temporary_folder: str = ""
    """A folder that the client made for it and removes at the end; "" if there is none."""

    def encode(self) -> bytes:
        """Return it as a message."""
        return json.dumps(self).encode()


class _Server:
    """Reaps what it has started. Invariant: `_statuses` has the pid of each that runs."""

    def __init__(self, jobs: socket.socket) -> None:
        self._jobs = jobs
        self._statuses: dict[int, int] = {}
        self._folders = TemporaryFolders()
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        os.set_blocking(self._woken, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)

    def serve(self) -> tuple[Job, list[int]] | None:
        """Return None when the client is gone; in a forked process, return its job."""
        while True:
            ready, _, _ = select.select([self._jobs.fileno(), self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 1024)
                self._reap()
            if self._jobs.fileno() in ready:
                message, descriptors, _, _ = socket.recv_fds(
                    self._jobs, MAX_JOB_BYTES, DESCRIPTORS_PER_JOB
                )
                if not message:
                    self._leave_folders()
                    return None
                job = Job(*json.loads(message))
                if self._fork(descriptors, job):
                    return job, descriptors

    def _fork(self, descriptors: list[int], job: Job) -> bool:
        """Answer with the new process's id. Return whether this is the new process."""
        *standard, status = descriptors
        server_id = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._forget_all()
            os.close(status)
            if job.is_bound:
                _die_with(server_id)
            return True
        self._statuses[pid] = status
        if job.temporary_folder:
            self._folders.add(job.temporary_folder, pid)
        for descriptor in standard:
            os.close(descriptor)
        with suppress(BrokenPipeError):  # The client may have ended.
            self._jobs.send(STATUS.pack(pid))
        return False

    def _forget_all(self) -> None:
        """Leave to the server what is the server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._jobs.close()
        for descriptor in (self._woken, self._waker, *self._statuses.values()):
            os.close(descriptor)

    def _reap(self) -> None:
        while self._statuses:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            self._folders.on_end(pid)
            teller = self._statuses.pop(pid)
            with suppress(BrokenPipeError):  # The reader may have ended.
                os.write(teller, STATUS.pack(os.waitstatus_to_exitcode(status)))
            os.close(teller)

    def _leave_folders(self) -> None:
        """Leave the folders that still exist to a new process, for the client may wait here.

        A client that was interrupted closes the socket and continues to use its folders.
        """
        folders = self._folders.existing()
        # A node whose folder somebody else has removed cannot stop cleanly.
        running = self._folders.users()
        if not folders and not running:
            return
        client = self._open_client()
        # None of them is reaped: the ids are still theirs.
        users = [os.pidfd_open(pid) for pid in running]
        if os.fork() == 0:
            self._forget_all()
            # Its standard error is also the client's, whose reader need not wait for this process.
            os.dup2(1, 2)
            remove_after_end(folders, client, users)

    def _open_client(self) -> int | None:
        """Return a descriptor of the client's process, or None if it has ended."""
        peer = self._jobs.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        client_id, *_ = _CREDENTIALS.unpack(peer)
        if os.getppid() != client_id:
            return None
        try:
            return os.pidfd_open(client_id)
        except ProcessLookupError:
            return None


def _die_with(parent_id: int) -> None:
    """Be killed when the parent ends, which it may have done already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_id:
        os._exit(1)


def _become(job: Job, standard: list[int]) -> None:
    """Be a process that was started for this job."""
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(job.folder)
    os.environ.clear()
    os.environ.update(job.environment)
    time.tzset()
    sys.argv = [job.module, *job.arguments]
    title = " ".join(["python", "-m", *sys.argv])
    # An argument may be a path whose bytes are no UTF-8, which a title has to be.
    setproctitle(title.encode(errors="replace").decode())


def main() -> None:
    """Serve; in each process that is forked, return only when its program is over."""
    number, *modules = sys.argv[1:]
    # Ctrl-C is for whoever asks; it tells its processes what it wants of them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    jobs = socket.socket(fileno=int(number))
    getproctitle()  # It finds its place now: later the environment is another one.
    for module in modules:
        import_module(module)
    gc.collect()
    gc.freeze()
    task = _Server(jobs).serve()
    if task is not None:
        job, (*standard, _) = task
        _become(job, standard)
        # What has been loaded ahead is run anew, under the name of a program.
        sys.modules.pop(f"{job.module}.__main__", None)
        runpy.run_module(job.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
