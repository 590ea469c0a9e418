"""The worker's side of a task that runs in another process.

The worker kills the process when it leaves the task behind. The process ends by itself when its
worker is gone or has been silent for half a session time-out, before another worker can take the
task over. So a task never runs twice.
"""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import Pipe
from typing import Any, Final, cast

from common.process.clock import now_ms
from connect.definitions.validation import kind_of
from connect.herder.effects import StartTask
from connect.worker import loggers
from connect.worker.environment import Environment
from connect.worker.isolation import messages
from connect.worker.tasks.exactly_once import TopicOffsets
from connect.worker.tasks.thread import FailedElsewhereError, TaskCounts, TaskThread, Work
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

_ALIVE_MS: Final = 1_000
_END_SECONDS: Final = 5.0
_SESSION: Final = "session.timeout.ms"


def process_work_maker(environment: Environment, start: StartTask) -> Callable[[TaskThread], Work]:
    """Return a function that creates the work; the process reports an invalid configuration."""
    return lambda thread: ProcessWork(thread, environment, start)


class ProcessWork:
    """Owns the process. The task's thread runs all methods but `_tell` and `_answer`."""

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
            # The process finds the same plugins as the worker.
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
        # Send the requests (pause, stop) that came before the process had started.
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
            # The process sees the closed pipe, and ends if it still runs.
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
        """Does nothing: the `TaskThread` in the process interrupts the task there."""

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
            # The process has ended; `_hear` notices that.
            log.info("process of a task is not told task=%s error=%s", self._thread.task, error)

    # --- from the process ---

    def _hear(self) -> messages.FromProcess | None:
        """Wait a moment for a message. Raises ConnectException when the process is gone."""
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
            case messages.Left(member):
                self._thread.member_left(member)
            case messages.Counted(counts, own):
                counts.own_metrics = lambda: own
                self.counts = counts
            case messages.Ask():
                # The call may take long; meanwhile this thread sends `Alive` to the process.
                name = f"answers-{self._thread.task}"
                threading.Thread(target=self._answer, args=(heard,), name=name, daemon=True).start()
            case messages.Ended(trace):
                raise FailedElsewhereError(trace or "The task ended before it had begun")

    def _answer(self, asked: messages.Ask) -> None:
        try:
            value = self._asked()[asked.what](*asked.arguments)
        # Pass any exception to the task, which decides.
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
