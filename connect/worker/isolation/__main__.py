"""`python -m connect.worker.isolation N`: one task, whose worker speaks over descriptor N."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Final, cast

from common.kafka.calm_clients import calm_aiokafka
from connect.clock import now_ms
from connect.herder.names import TaskId
from connect.herder.offsets import OffsetRecord
from connect.plugins.scan import find_plugins
from connect.worker import loggers
from connect.worker.environment import environment_of
from connect.worker.isolation import messages
from connect.worker.offset_store import Entries
from connect.worker.settings import WorkerSettings
from connect.worker.task_thread import Control, TaskThread
from connect.worker.tasks import work_maker
from millrace.connect.connectors import SourcePartition
from millrace.connect.errors import ConnectException

log = logging.getLogger("connect.worker.isolation")

_COUNT_MS: Final = 1_000
_GIVEN_UP: Final = 3


class Worker:
    """The worker as its task's process sees it. Told things from the task's thread, heard in main.

    What is asked for a store of offsets is asked of it; so it is one.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._asking = threading.Lock()
        self._answered = threading.Event()
        self._answer: messages.Answer | None = None
        self.has_ended = False
        """Whether the worker was told that the task has."""

    def tell(self, message: messages.FromProcess) -> None:
        with self._lock:
            self._pipe.send(message)

    def answered(self, answer: messages.Answer) -> None:
        self._answer = answer
        self._answered.set()

    def _ask(self, what: str, *arguments: Any) -> Any:
        """Raises ConnectException when the worker could not do it."""
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

    def require_current(self, thread: TaskThread) -> None:
        del thread
        self._ask("require_current")

    def count(self, thread: TaskThread) -> None:
        """Tell the figures."""
        if thread.work is not None and not self.has_ended:
            counts = thread.work.counts
            own = tuple(counts.own_metrics())
            self.tell(messages.Counted(replace(counts, own_metrics=tuple), own))


def heard(message: messages.FromWorker, worker: Worker, thread: TaskThread) -> None:
    """Do what the worker says."""
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
    """Do what the worker says until it is gone, which it is when it knows of the task's end."""
    heard_ms = counted_ms = now_ms()
    while True:
        try:
            if pipe.poll(_COUNT_MS / 1000):
                heard(pipe.recv(), worker, thread)
                heard_ms = now_ms()
            # By the clock: the worker is heard about as often, so there may never be silence.
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
    # A terminal's Ctrl-C and a service's end go to all processes: here the worker says what to do.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    pipe = Connection(descriptor)
    begin: messages.Begin = pipe.recv()
    loggers.log_to_stderr()
    calm_aiokafka()
    loggers.take_levels(begin.levels)
    settings = WorkerSettings.of(begin.settings, is_distributed=begin.is_distributed)
    worker = Worker(pipe)
    environment = environment_of(settings, find_plugins(settings["plugin.path"]), worker)
    control = Control(is_paused=begin.task.is_paused)
    thread = TaskThread(begin.task.task, work_maker(environment, begin.task), control, worker)
    thread.start()
    return listen(pipe, worker, thread, begin.silence_ms)


if __name__ == "__main__":
    status = main()
    logging.shutdown()
    # At once: no thread that the task's code may have left is waited for.
    os._exit(status)
