"""The thread of one task: it starts, pauses and ends the task, and reports to the worker."""

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from connect.definitions.concealing import NOTHING
from connect.errors.tolerance import ErrorCounts
from connect.herder.names import TaskId
from connect.worker.tasks.departures import Member
from millstream.connect.connectors import TaskMetric

log = logging.getLogger(__name__)

_STOP_GRACE_SECONDS: Final = 1.0
_T = TypeVar("_T")


@dataclass(slots=True)
class TaskCounts:
    """A task's counters, under the names of Kafka's task metrics."""

    kind: str
    source_record_poll_total: int = 0
    source_record_write_total: int = 0
    sink_record_read_total: int = 0
    sink_record_send_total: int = 0
    offset_commit_completion_total: int = 0
    offset_commit_failure_total: int = 0
    partition_count: int = 0
    record_lag: int | None = None
    """The number of records that a sink has still to put; None until it is known."""
    errors: ErrorCounts = field(default_factory=ErrorCounts)
    own_metrics: Callable[[], Iterable[TaskMetric]] = tuple
    """The metrics that the task's own code reports."""


class Control:
    """The worker's requests to a task (pause, stop), and how the task waits for them."""

    def __init__(self, *, is_paused: bool = False) -> None:
        self._changed = threading.Event()
        self.is_stopping = False
        self.is_paused = is_paused
        self.began_paused = is_paused
        """The state that the worker shows until the task reports another one."""
        self.changed: Callable[[], None] | None = None
        """Also called after a change, for a task that runs in another process."""

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
        """Wait for `delay_ms` or until a request comes; return whether to stop."""
        if self._changed.wait(delay_ms / 1000) and not self.is_stopping:
            self._changed.clear()
        return self.is_stopping


class FailedElsewhereError(Exception):
    """A task failed in another process; the message is its trace."""

    def __init__(self, trace: str) -> None:
        super().__init__(trace)
        self.trace = trace


class Work(Protocol):
    """The work of a source or sink task. All methods but `interrupt` run in its thread."""

    counts: TaskCounts

    def begin(self) -> str:
        """Create and start everything; return the version of the task's class."""

    def go_on(self) -> None:
        """Work until the control asks to stop."""

    def end(self) -> None:
        """Release all resources, also when `begin` or `go_on` failed."""

    def interrupt(self) -> None:
        """Make a blocked call into the task return. Called from another thread."""


class Listener(Protocol):
    """Receives a task's events, in the task's thread."""

    def task_began(self, thread: "TaskThread", version: str) -> None: ...

    def task_held(self, thread: "TaskThread", is_paused: bool) -> None: ...

    def task_noted(self, thread: "TaskThread", note: str | None) -> None: ...

    def task_ended(self, thread: "TaskThread", trace: str | None) -> None:
        """The task failed if there is a trace; otherwise it stopped."""

    def topic_used(self, task: TaskId, topic: str) -> None: ...

    def member_left(self, member: Member) -> None:
        """The task's consumer could not leave its group. Called after `leave`, too."""

    def require_current(self, thread: "TaskThread") -> None:
        """Read the configurations to their end. Raises ConnectException if the task must stop."""


class Caller:
    """Calls methods of connectors and tasks, plain or async, in their own thread.

    It owns the event loop of that thread, which the first call of an async method creates.

    All methods but `from_outside` are called in that thread.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method and return its result."""
        given = method(*arguments)
        if given is None or not inspect.isawaitable(given):
            return given
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(_awaited(given))

    def from_outside(self, method: Callable[[], Any]) -> None:
        """Call a method while the thread runs another one; does not wait for the call."""
        given = method()
        loop = self._loop
        if inspect.iscoroutine(given):
            if loop is None or not loop.is_running():
                given.close()
                return
            asyncio.run_coroutine_threadsafe(given, loop)

    def close(self) -> None:
        if self._loop is None:
            return
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
        self._loop = None


async def _awaited(given: Awaitable[_T]) -> _T:
    return await given


class TaskThread(threading.Thread):
    """Owns a task's work from start to end. Reports its end exactly once, unless left behind."""

    def __init__(
        self,
        task: TaskId,
        make: Callable[["TaskThread"], Work],
        control: Control,
        listener: Listener,
    ) -> None:
        # A daemon: a thread that was left behind must not delay the end of the process.
        super().__init__(name=f"task-{task}", daemon=True)
        self.task = task
        self.control = control
        self.caller = Caller()
        self.is_left = False
        """True once the worker has left the thread behind: it must not write anything."""
        self.work: Work | None = None
        """None before the work is created and after its end is reported."""
        self.concealing = NOTHING
        """Hides secrets in the task's reports; set when its work is created."""
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
        # The outermost edge of a task: an exception ends this task only.
        except BaseException as error:  # noqa: BLE001
            trace = self._ended_by(error)
        finally:
            if self.work is not None:
                try:
                    self.work.end()
                except BaseException as error:  # noqa: BLE001
                    trace_of_end = self.concealing.trace(error)
                    log.error("task did not end cleanly task=%s\n%s", self.task, trace_of_end)
            self.caller.close()
        self._tell(self._listener.task_ended, trace)
        # Free the clients and their threads here, not when the garbage collector runs.
        self.work = None

    def _ended_by(self, error: BaseException) -> str | None:
        if self.control.is_stopping:
            said = self.concealing.text(f"{type(error).__name__}: {error}")
            log.info("task raised while it stopped task=%s error=%s", self.task, said)
            return None
        if isinstance(error, FailedElsewhereError):
            # The task's process has logged the trace.
            return error.trace
        trace = self.concealing.trace(error)
        log.error("task failed task=%s\n%s", self.task, trace)
        return trace

    def _tell(self, of: Callable[..., None], *what: Any) -> None:
        if not self.is_left:
            of(self, *what)

    def held(self, is_paused: bool) -> None:
        self._tell(self._listener.task_held, is_paused)

    def take_note(self, note: str | None) -> None:
        """Report the task's note when it has changed."""
        if note != self._note:
            self._note = note
            told = None if note is None else self.concealing.text(note)
            self._tell(self._listener.task_noted, told)

    def require_current(self) -> None:
        """Check, before the first write, that this task is still assigned and configured."""
        self._listener.require_current(self)

    def topic_used(self, topic: str) -> None:
        if not self.is_left:
            self._listener.topic_used(self.task, topic)

    def member_left(self, member: Member) -> None:
        self._listener.member_left(member)

    def ask_to_stop(self) -> None:
        """Ask the thread to stop; after a moment, interrupt a blocked call into the task."""
        self.control.stop()
        timer = threading.Timer(_STOP_GRACE_SECONDS, self._interrupt)
        timer.daemon = True
        timer.start()

    def _interrupt(self) -> None:
        work = self.work
        if self.is_alive() and work is not None:
            try:
                work.interrupt()
            # The outermost edge of the timer's thread: log everything.
            except BaseException as error:  # noqa: BLE001
                trace = self.concealing.trace(error)
                log.error("task could not be interrupted task=%s\n%s", self.task, trace)

    def leave(self) -> None:
        """Leave the thread behind: it may end at any time, and its reports are dropped."""
        log.warning("task does not stop and is left behind task=%s", self.task)
        self.is_left = True
        self.control.tell()
