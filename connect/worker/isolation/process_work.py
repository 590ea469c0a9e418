"""A task's work as its worker sees it when it is done in another process.

The process is killed as soon as it is left behind, and ends by itself when its worker is gone or
has been silent for half a session: what another worker has taken over by then runs once.
"""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import Pipe
from typing import Any, Final, cast

from connect.clock import now_ms
from connect.definitions.validation import kind_of
from connect.herder.effects import StartTask
from connect.worker import loggers
from connect.worker.environment import Environment
from connect.worker.exactly_once_task import TopicOffsets
from connect.worker.isolation import messages
from connect.worker.task_thread import FailedElsewhereError, TaskCounts, TaskThread, Work
from millrace.connect.errors import ConnectException

log = logging.getLogger(__name__)

_ALIVE_MS: Final = 1_000
_END_SECONDS: Final = 5.0
_SESSION: Final = "session.timeout.ms"


def process_work_maker(environment: Environment, start: StartTask) -> Callable[[TaskThread], Work]:
    """Return what makes the work; the process finds out what is wrong with the configuration."""
    return lambda thread: ProcessWork(thread, environment, start)


class ProcessWork:
    """Owns the process. All but `_tell` runs in the task's thread, answers in threads of theirs."""

    def __init__(self, thread: TaskThread, environment: Environment, start: StartTask) -> None:
        self.counts = TaskCounts(kind_of(environment.plugins, start.connector_config) or "source")
        self._thread = thread
        self._environment = environment
        self._start = start
        self._lock = threading.Lock()
        self._pipe, self._others = Pipe()
        self._process: subprocess.Popen[bytes] | None = None
        self._next_alive_ms = 0

    # --- its life ---

    def begin(self) -> str:
        descriptor = self._others.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "connect.worker.isolation", str(descriptor)],
            stdin=subprocess.DEVNULL,
            pass_fds=[descriptor],
            # It finds what the worker finds.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._others.close()
        log.info("task has a process task=%s pid=%d", self._thread.task, self._process.pid)
        settings, control = self._environment.settings, self._thread.control
        session_ms = settings.parsed.get(_SESSION)
        begin = messages.Begin(
            self._start,
            dict(settings.written),
            is_distributed=session_ms is not None,
            silence_ms=None if session_ms is None else session_ms // 2,
            levels=loggers.own_levels(),
        )
        self._tell(begin)
        control.changed = self._changed
        # What was asked for until now, nobody was told.
        self._changed()
        while True:
            heard = self._hear()
            if isinstance(heard, messages.Began):
                return heard.version
            if heard is not None:
                self._take(heard)

    def go_on(self) -> None:
        while (heard := self._hear()) != messages.Ended(None):
            if heard is not None:
                self._take(heard)

    def end(self) -> None:
        self._thread.control.changed = None
        with self._lock:
            # The process hears of it, and ends if it has not.
            self._pipe.close()
        if self._process is None:
            self._others.close()
            return
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            log.warning("process of a task is killed task=%s", self._thread.task)
            self._process.kill()
            self._process.wait()

    def interrupt(self) -> None:
        """In the process it is done by the thread that the task has there."""

    # --- to the process ---

    def _changed(self) -> None:
        control = self._thread.control
        if self._thread.is_left and self._process is not None:
            self._process.kill()
        elif control.is_stopping:
            self._tell(messages.Stop())
        else:
            self._tell(messages.Pause(control.is_paused))

    def _tell(self, message: messages.FromWorker) -> None:
        try:
            with self._lock:
                self._pipe.send(message)
        except OSError as error:
            # Its end is heard where it is listened to.
            log.info("process of a task is not told task=%s error=%s", self._thread.task, error)

    # --- from the process ---

    def _hear(self) -> messages.FromProcess | None:
        """Wait for a word of the process, not for long. Raises ConnectException when it is gone."""
        assert self._process is not None
        try:
            if self._pipe.poll(max(0, self._next_alive_ms - now_ms()) / 1000):
                return cast("messages.FromProcess", self._pipe.recv())
        except (EOFError, OSError) as error:
            status = self._process.wait()
            raise ConnectException(f"The task's process has ended, {_by(status)}") from error
        self._next_alive_ms = now_ms() + _ALIVE_MS
        self._tell(messages.Alive(loggers.own_levels()))
        return None

    def _take(self, heard: messages.FromProcess) -> None:
        match heard:
            case messages.Began():
                raise ConnectException("The task's process began twice")
            case messages.Held(is_paused):
                self._thread.held(is_paused)
            case messages.Noted(note):
                self._thread.take_note(note)
            case messages.Used(topic):
                self._thread.topic_used(topic)
            case messages.Counted(counts, own):
                counts.own_metrics = lambda: own
                self.counts = counts
            case messages.Ask():
                # It may take long, and the process is to hear meanwhile that its worker lives.
                name = f"answers-{self._thread.task}"
                threading.Thread(target=self._answer, args=(heard,), name=name, daemon=True).start()
            case messages.Ended(trace):
                raise FailedElsewhereError(trace or "The task ended before it had begun")

    def _answer(self, asked: messages.Ask) -> None:
        try:
            value = self._asked()[asked.what](*asked.arguments)
        # Whatever it is, the task is told and decides.
        except Exception as error:  # noqa: BLE001
            self._tell(messages.Answer(None, f"{type(error).__name__}: {error}"))
            return
        self._tell(messages.Answer(value, None))

    def _asked(self) -> dict[str, Callable[..., Any]]:
        offsets = self._environment.offsets
        topic_offsets = cast("TopicOffsets", offsets)
        return {
            "offsets": offsets.offsets,
            "of_connector": offsets.of_connector,
            "write": offsets.write,
            "topic": lambda: topic_offsets.topic,
            "records": lambda *given: topic_offsets.records(*given),
            "committed": lambda *given: topic_offsets.committed(*given),
            "require_current": self._thread.require_current,
        }


def _by(status: int) -> str:
    return f"killed by signal {-status}" if status < 0 else f"with status {status}"
