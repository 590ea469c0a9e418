"""`python -m connect.worker.isolation N`: runs one task; descriptor N leads to its worker."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Final, cast

from common.kafka.quiet_clients import quiet_clients
from common.process import traces
from common.process.clock import now_ms
from connect.herder.names import TaskId
from connect.herder.offsets import OffsetRecord
from connect.plugins.scan import find_plugins
from connect.worker import loggers
from connect.worker.environment import environment_of
from connect.worker.isolation import messages
from connect.worker.offset_store import Entries
from connect.worker.settings import WorkerSettings
from connect.worker.tasks.departures import Member
from connect.worker.tasks.factory import work_maker
from connect.worker.tasks.thread import Control, TaskThread
from millstream.connect.connectors import SourcePartition
from millstream.connect.errors import ConnectException

log = logging.getLogger("connect.worker.isolation")

_COUNT_MS: Final = 1_000
_GIVEN_UP: Final = 3


class Worker:
    """The worker, as its task's process sees it.

    The task's thread sends messages to it; the main thread receives from it. It is also the task's
    offset store: it passes the calls to the worker.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._answered = threading.Event()
        self._answer: messages.Answer | None = None
        self.has_ended = False
        """True once the worker was told that the task has ended."""

    def tell(self, message: messages.FromProcess) -> None:
        with self._lock:
            self._pipe.send(message)

    def answered(self, answer: messages.Answer) -> None:
        self._answer = answer
        self._answered.set()

    def _ask(self, what: str, *arguments: Any) -> Any:
        """Raises ConnectException when the worker could not perform the call."""
        with self._asking:
            self._answered.clear()
            self.tell(messages.Ask(what, arguments))
            self._answered.wait()
            answer = self._answer
        assert answer is not None
        if answer.error is not None:
            raise ConnectException(answer.error)
        return answer.value

    # --- as a store of offsets ---

    @property
    def topic(self) -> str:
        return cast("str", self._ask("topic"))

    def offsets(self, connector: str, partitions: Sequence[SourcePartition]) -> list[Any]:
        return cast("list[Any]", self._ask("offsets", connector, list(partitions)))

    def of_connector(self, connector: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return cast("list[Any]", self._ask("of_connector", connector))

    def write(self, connector: str, entries: Entries, timeout_ms: int) -> None:
        self._ask("write", connector, list(entries), timeout_ms)

    def records(self, connector: str, entries: Entries) -> list[OffsetRecord]:
        return cast("list[OffsetRecord]", self._ask("records", connector, list(entries)))

    def committed(self, connector: str, entries: Entries, timeout_ms: int) -> None:
        self._ask("committed", connector, list(entries), timeout_ms)

    # --- as the listener of the task's thread ---

    def task_began(self, thread: TaskThread, version: str) -> None:
        del thread
        self.tell(messages.Began(version))

    def task_held(self, thread: TaskThread, is_paused: bool) -> None:
        del thread
        self.tell(messages.Held(is_paused))

    def task_noted(self, thread: TaskThread, note: str | None) -> None:
        del thread
        self.tell(messages.Noted(note))

    def task_ended(self, thread: TaskThread, trace: str | None) -> None:
        self.count(thread)
        self.has_ended = True
        self.tell(messages.Ended(trace))

    def topic_used(self, task: TaskId, topic: str) -> None:
        del task
        self.tell(messages.Used(topic))

    def member_left(self, member: Member) -> None:
        self.tell(messages.Left(member))

    def require_current(self, thread: TaskThread) -> None:
        del thread
        self._ask("require_current")

    def count(self, thread: TaskThread) -> None:
        """Send the task's metrics to the worker."""
        if thread.work is not None and not self.has_ended:
            counts = thread.work.counts
            own = tuple(counts.own_metrics())
            self.tell(messages.Counted(replace(counts, own_metrics=tuple), own))


def heard(message: messages.FromWorker, worker: Worker, thread: TaskThread) -> None:
    """Act on one message of the worker."""
    match message:
        case messages.Answer():
            worker.answered(message)
        case messages.Pause(is_paused):
            thread.control.pause(is_paused)
        case messages.Stop():
            thread.ask_to_stop()
        case messages.Alive(levels):
            loggers.take_levels(levels)
        case messages.Begin():
            raise ValueError("a process has one task")


def listen(pipe: Connection, worker: Worker, thread: TaskThread, silence_ms: int | None) -> int:
    """Act on the worker's messages until it closes the pipe, as it does after the task's end."""
    heard_ms = counted_ms = now_ms()
    while True:
        try:
            if pipe.poll(_COUNT_MS / 1000):
                heard(pipe.recv(), worker, thread)
                heard_ms = now_ms()
            # Checked by the clock: messages may arrive so often that no read ever times out.
            if now_ms() - counted_ms >= _COUNT_MS:
                worker.count(thread)
                counted_ms = now_ms()
        except (EOFError, OSError):
            break
        if silence_ms is not None and now_ms() - heard_ms > silence_ms:
            log.error("worker is silent, the task ends task=%s", thread.task)
            return _GIVEN_UP
    if worker.has_ended:
        return 0
    log.error("worker is gone, the task ends task=%s", thread.task)
    return _GIVEN_UP


def main() -> int:
    # Ctrl-C and a service stop send signals to all processes; only the worker reacts to them.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    pipe = Connection(descriptor)
    begin: messages.Begin = pipe.recv()
    loggers.log_to_stderr()
    quiet_clients()
    loggers.take_levels(begin.levels)
    settings = WorkerSettings.of(begin.settings, is_distributed=begin.is_distributed)
    worker = Worker(pipe)
    environment = environment_of(settings, find_plugins(settings["plugin.path"]), worker)
    control = Control(is_paused=begin.task.is_paused)
    thread = TaskThread(begin.task.task, work_maker(environment, begin.task), control, worker)
    with traces.recorded("connect"):
        thread.start()
        return listen(pipe, worker, thread, begin.silence_ms)


if __name__ == "__main__":
    status = main()
    logging.shutdown()
    # Exit at once, without waiting for threads that the task's code may have left.
    os._exit(status)
