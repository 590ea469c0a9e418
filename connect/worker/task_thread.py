"""A task in a thread of its own: started, held, ended, and what of that is told to the worker."""

import logging
import threading
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from connect.definitions.concealing import NOTHING
from connect.errors.tolerance import ErrorCounts
from connect.herder.names import TaskId
from connect.worker.calling import Caller
from millrace.connect.connectors import TaskMetric

log = logging.getLogger(__name__)

_STOP_GRACE_SECONDS: Final = 1.0


@dataclass(slots=True)
class TaskCounts:
    """What a task has done, under the names of Kafka's task metrics."""

    kind: str
    source_record_poll_total: int = 0
    source_record_write_total: int = 0
    sink_record_read_total: int = 0
    sink_record_send_total: int = 0
    offset_commit_completion_total: int = 0
    offset_commit_failure_total: int = 0
    partition_count: int = 0
    record_lag: int | None = None
    """How many records of its partitions a sink has not put; None until it knows."""
    errors: ErrorCounts = field(default_factory=ErrorCounts)
    own_metrics: Callable[[], Iterable[TaskMetric]] = tuple
    """What the task's own code tells of itself."""


class Control:
    """What is asked of a task from outside, and how it waits."""

    def __init__(self, *, is_paused: bool = False) -> None:
        self._changed = threading.Event()
        self.is_stopping = False
        self.is_paused = is_paused
        self.began_paused = is_paused
        """What the worker shows of the task until it tells something else."""
        self.changed: Callable[[], None] | None = None
        """Is told as well, when the task is not where it is asked."""

    def stop(self) -> None:
        self.is_stopping = True
        self.tell()

    def pause(self, is_paused: bool) -> None:
        self.is_paused = is_paused
        self.tell()

    def tell(self) -> None:
        self._changed.set()
        changed = self.changed
        if changed is not None:
            changed()

    def wait(self, delay_ms: float) -> bool:
        """Wait so long, or until something is asked; returns whether to stop."""
        if self._changed.wait(delay_ms / 1000) and not self.is_stopping:
            self._changed.clear()
        return self.is_stopping


class FailedElsewhereError(Exception):
    """A task failed where it ran; its trace is all there is to know."""

    def __init__(self, trace: str) -> None:
        super().__init__(trace)
        self.trace = trace


class Work(Protocol):
    """A source's or a sink's task, as its thread sees it. All but `interrupt` runs there."""

    counts: TaskCounts

    def begin(self) -> str:
        """Make and start everything; returns the version of the task's class."""

    def go_on(self) -> None:
        """Do the work until the control says stop."""

    def end(self) -> None:
        """Give back what there is, also when `begin` or `go_on` failed."""

    def interrupt(self) -> None:
        """Have a call into the task that waits come back. Called from another thread."""


class Listener(Protocol):
    """Is told what becomes of a task, from the task's thread."""

    def task_began(self, thread: "TaskThread", version: str) -> None: ...

    def task_held(self, thread: "TaskThread", is_paused: bool) -> None: ...

    def task_noted(self, thread: "TaskThread", note: str | None) -> None: ...

    def task_ended(self, thread: "TaskThread", trace: str | None) -> None:
        """With a trace it failed."""

    def topic_used(self, task: TaskId, topic: str) -> None: ...

    def require_current(self, thread: "TaskThread") -> None:
        """Raises ConnectException when the task is not to run any more, by all there is to know."""


class TaskThread(threading.Thread):
    """Owns a task's work from its start to its end. Tells its end exactly once, unless left."""

    def __init__(
        self,
        task: TaskId,
        make: Callable[["TaskThread"], Work],
        control: Control,
        listener: Listener,
    ) -> None:
        # A daemon: one that was left behind must not hold up the end of the process.
        super().__init__(name=f"task-{task}", daemon=True)
        self.task = task
        self.control = control
        self.caller = Caller()
        self.is_left = False
        """Whether nobody waits for it any more: it may write nothing from now on."""
        self.work: Work | None = None
        """None before it is made, and once its end is told."""
        self.concealing = NOTHING
        """Takes secrets out of what is told of the task; known once its work is made."""
        self._make = make
        self._listener = listener
        self._note: str | None = None

    def run(self) -> None:
        trace: str | None = None
        try:
            self.work = self._make(self)
            version = self.work.begin()
            self._tell(self._listener.task_began, version)
            self.work.go_on()
        # The outermost edge of a task: whatever it raises is its end and nobody else's.
        except BaseException as error:  # noqa: BLE001
            trace = self._ended_by(error)
        finally:
            if self.work is not None:
                try:
                    self.work.end()
                except BaseException:
                    log.exception("task did not end cleanly task=%s", self.task)
            self.caller.close()
        self._tell(self._listener.task_ended, trace)
        # What it held, clients and their threads, goes now and not when the collector comes.
        self.work = None

    def _ended_by(self, error: BaseException) -> str | None:
        if self.control.is_stopping:
            log.info("task raised while it stopped task=%s error=%r", self.task, error)
            return None
        if isinstance(error, FailedElsewhereError):
            # It was logged there.
            return error.trace
        trace = self.concealing.text("".join(traceback.format_exception(error)))
        log.error("task failed task=%s\n%s", self.task, trace)
        return trace

    def _tell(self, of: Callable[..., None], *what: Any) -> None:
        if not self.is_left:
            of(self, *what)

    def held(self, is_paused: bool) -> None:
        self._tell(self._listener.task_held, is_paused)

    def take_note(self, note: str | None) -> None:
        """Tell what the task says of itself, when that is something else than before."""
        if note != self._note:
            self._note = note
            told = None if note is None else self.concealing.text(note)
            self._tell(self._listener.task_noted, told)

    def require_current(self) -> None:
        """Look once more, before the first write, whether this task is still wanted here."""
        self._listener.require_current(self)

    def topic_used(self, topic: str) -> None:
        if not self.is_left:
            self._listener.topic_used(self.task, topic)

    def ask_to_stop(self) -> None:
        """Ask; what waits in the task's own code is called back after a moment."""
        self.control.stop()
        timer = threading.Timer(_STOP_GRACE_SECONDS, self._interrupt)
        timer.daemon = True
        timer.start()

    def _interrupt(self) -> None:
        work = self.work
        if self.is_alive() and work is not None:
            try:
                work.interrupt()
            # The outermost edge of the timer's thread.
            except BaseException:
                log.exception("task could not be interrupted task=%s", self.task)

    def leave(self) -> None:
        """Wait no longer: the thread may end when it will, and says nothing any more."""
        log.warning("task does not stop and is left behind task=%s", self.task)
        self.is_left = True
        self.control.tell()
