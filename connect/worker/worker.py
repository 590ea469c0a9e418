"""The shell around one herder: it performs the herder's effects and reports their outcomes.

Everything here runs on one event loop; other threads use `_post`. The herder steps after every
input, so an effect never waits for a timer.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from common.process.clock import now_ms, timestamp_ms
from connect.herder import effects
from connect.herder.config_records import ConfigRecord
from connect.herder.effects import Effect
from connect.herder.herder import Assignment, Herder
from connect.herder.names import TaskId
from connect.herder.status import StatusRecord, TopicStatus, topic_record
from connect.worker import loggers
from connect.worker.connector_thread import ConnectorThread
from connect.worker.environment import Environment
from connect.worker.isolation.process_work import process_work_maker
from connect.worker.tasks.departures import Departures, Member
from connect.worker.tasks.factory import work_maker
from connect.worker.tasks.thread import Control, TaskCounts, TaskThread
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

_END_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 60.0


class Record(Protocol):
    """A record of the config or status topic."""

    @property
    def key(self) -> str: ...

    @property
    def value(self) -> bytes | None: ...


class Log(Protocol):
    """A log that every worker reads from its beginning."""

    async def append(self, records: Sequence[Record]) -> None:
        """Write records and wait until this worker has read them. Raises ConnectException."""

    def submit(self, records: Sequence[Record]) -> None:
        """Write records in order, without waiting."""


class Neighbours(Protocol):
    """The other workers of the group."""

    def send_task_configs(self, effect: effects.SendTaskConfigs) -> None:
        """Send a connector's tasks to the leader; retry until it has them or they are outdated."""

    def owner_url(self, name: str | TaskId) -> str | None:
        """Return the URL of the worker to which the leader has assigned `name`."""

    def fence(self, effect: effects.FenceTasks | effects.AskForFencing) -> None:
        """Fence the producers of a connector's earlier tasks, or ask the leader to do it."""

    async def fence_now(self, name: str) -> None:
        """As the leader, fence at once. Raises RefusalError, ElsewhereError, ConnectException."""

    async def catch_up(self) -> int:
        """Read the config topic to its end; return that offset. Raises ConnectException."""

    async def wait_until_member(self) -> None:
        """Wait until this worker is a member of the group."""


class MemoryLog:
    """The log of a standalone worker: a written record is read at once."""

    def __init__(self, replay: Callable[[str, bytes | None], None]) -> None:
        self._replay = replay

    async def append(self, records: Sequence[Record]) -> None:
        self.submit(records)

    def submit(self, records: Sequence[Record]) -> None:
        for record in records:
            self._replay(record.key, record.value)


class LastError(NamedTuple):
    """The reason of a failure, and its time."""

    timestamp_ms: int
    trace: str


def _connector(of: str | TaskId) -> str:
    return of if isinstance(of, str) else of.connector


class Worker:
    """Owns the threads of this worker's connectors and tasks."""

    def __init__(
        self,
        herder: Herder,
        environment: Environment,
        config_log: Log,
        status_log: Log,
        neighbours: Neighbours | None = None,
    ) -> None:
        self.herder = herder
        self.environment = environment
        self.config_log = config_log
        self.status_log = status_log
        self.connectors: dict[str, ConnectorThread] = {}
        self.tasks: dict[TaskId, TaskThread] = {}
        self.neighbours = neighbours
        self.last_errors: dict[str | TaskId, LastError] = {}
        """The last failure of each connector and task here, also when it runs again."""
        self._departures = Departures()
        self.is_ready = True
        """True once the worker has read its topics to their ends."""
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._is_pumping = False
        self._idle = asyncio.Event()
        self._task_gone = asyncio.Event()

    # --- inputs ---

    def _post(self, change: Callable[..., None], *what: Any) -> None:
        """Call `change` on the event loop; called from other threads."""
        try:
            self._loop.call_soon_threadsafe(self._take, change, *what)
        except RuntimeError:
            # The event loop is closed: the worker has ended without this thread.
            log.info("worker has ended, nobody is told change=%s", change.__name__)

    def _take(self, change: Callable[..., None], *what: Any) -> None:
        change(*what)
        self.pump()

    def pump(self) -> None:
        """Step the herder and perform its effects until there are none."""
        if self._is_pumping:
            return
        self._is_pumping = True
        try:
            while found := self.herder.step(now_ms()):
                for effect in found:
                    self._perform(effect)
        finally:
            self._is_pumping = False
        self._set_timer()
        self._task_gone.set()
        if not self.connectors and not self.tasks:
            self._idle.set()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self.herder.next_deadline_ms()
        if deadline_ms is not None:
            delay_seconds = max(0, deadline_ms - now_ms()) / 1000
            self._timer = self._loop.call_later(delay_seconds, self.pump)

    # --- effects ---

    def _perform(self, effect: Effect) -> None:
        match effect:
            case effects.StartConnector():
                self._start_connector(effect)
            case effects.StopConnector(name):
                self._stop(self.connectors, name, self.herder.connector_stopped)
            case effects.MakeTaskConfigs(name, config):
                if name in self.connectors:
                    self.connectors[name].make_task_configs(config)
            case effects.StartTask():
                self._start_task(effect)
            case effects.StopTask(task):
                self._stop(self.tasks, task, self.herder.task_stopped)
            case effects.PauseTask(task, is_paused):
                if task in self.tasks:
                    self.tasks[task].control.pause(is_paused)
            case _:
                self._write(effect)

    def _write(
        self,
        effect: effects.WriteConfig
        | effects.WriteStatus
        | effects.SetLogger
        | effects.SendTaskConfigs
        | effects.FenceTasks
        | effects.AskForFencing,
    ) -> None:
        match effect:
            case effects.WriteConfig(records):
                self.config_log.submit(records)
            case effects.WriteStatus(record):
                self.status_log.submit([record])
            case effects.SetLogger(logger, level):
                loggers.set_level(logger, level, timestamp_ms())
            case effects.SendTaskConfigs():
                assert self.neighbours is not None, effect
                self.neighbours.send_task_configs(effect)
            case effects.FenceTasks() | effects.AskForFencing():
                assert self.neighbours is not None, effect
                self.neighbours.fence(effect)

    def _start_connector(self, effect: effects.StartConnector) -> None:
        log.info("connector starts connector=%s", effect.name)
        self._idle.clear()
        thread = ConnectorThread(effect.name, effect.config, self.environment, self)
        self.connectors[effect.name] = thread
        thread.start()

    def _start_task(self, effect: effects.StartTask) -> None:
        log.info("task starts task=%s", effect.task)
        self._idle.clear()
        is_apart = self.environment.settings["tasks.isolation"] == "process"
        make = (process_work_maker if is_apart else work_maker)(self.environment, effect)
        thread = TaskThread(effect.task, make, Control(is_paused=effect.is_paused), self)
        self.tasks[effect.task] = thread
        thread.start()

    def _stop(self, threads: dict[Any, Any], name: Any, stopped: Callable[[Any], None]) -> None:
        """Stop a thread, or leave it behind after the time-out: `stopped` is always called."""
        if name not in threads:
            # The thread has ended by itself.
            stopped(name)
            return
        thread: ConnectorThread | TaskThread = threads[name]
        thread.ask_to_stop()
        timeout_ms = self.environment.settings["task.shutdown.graceful.timeout.ms"]

        def leave() -> None:
            if threads.get(name) is thread:
                thread.leave()
                del threads[name]
                stopped(name)
                self.pump()

        self._loop.call_later(timeout_ms / 1000 + _END_SECONDS, leave)

    # --- events of connectors: called from their threads ---

    def connector_began(self, thread: ConnectorThread, version: str) -> None:
        self._post(self._connector_began, thread, version)

    def _connector_began(self, thread: ConnectorThread, version: str) -> None:
        if self._is_current(thread):
            log.info("connector runs connector=%s", thread.connector)
            self.herder.connector_started(thread.connector, version, now_ms())

    def configs_made(self, thread: ConnectorThread, configs: Sequence[Mapping[str, str]]) -> None:
        self._post(self._configs_made, thread, configs)

    def _configs_made(self, thread: ConnectorThread, configs: Sequence[Mapping[str, str]]) -> None:
        if self._is_current(thread):
            self.herder.task_configs_made(thread.connector, configs)

    def connector_noted(self, thread: ConnectorThread, note: str | None) -> None:
        self._post(self._connector_noted, thread, note)

    def _connector_noted(self, thread: ConnectorThread, note: str | None) -> None:
        if self._is_current(thread):
            log.info("connector notes connector=%s note=%s", thread.connector, note)
            self.herder.noted(thread.connector, note)

    def reconfigure(self, thread: ConnectorThread) -> None:
        self._post(self._reconfigure, thread)

    def _reconfigure(self, thread: ConnectorThread) -> None:
        if self._is_current(thread):
            self.herder.reconfigure(thread.connector)

    def connector_ended(self, thread: ConnectorThread, trace: str | None) -> None:
        self._post(self._connector_ended, thread, trace)

    def _connector_ended(self, thread: ConnectorThread, trace: str | None) -> None:
        if not self._is_current(thread):
            return
        del self.connectors[thread.connector]
        log.info("connector ended connector=%s", thread.connector)
        if thread.is_stopping or trace is None:
            self.herder.connector_stopped(thread.connector)
        else:
            self._keep_error(thread.connector, trace)
            self.herder.connector_failed(thread.connector, trace, now_ms())

    def _is_current(self, thread: ConnectorThread) -> bool:
        return self.connectors.get(thread.connector) is thread

    # --- events of tasks: called from their threads ---

    def task_began(self, thread: TaskThread, version: str) -> None:
        self._post(self._task_began, thread, version)

    def _task_began(self, thread: TaskThread, version: str) -> None:
        if self.tasks.get(thread.task) is thread:
            log.info("task runs task=%s", thread.task)
            self.herder.task_started(thread.task, version, now_ms())

    def task_held(self, thread: TaskThread, is_paused: bool) -> None:
        self._post(self._task_held, thread, is_paused)

    def _task_held(self, thread: TaskThread, is_paused: bool) -> None:
        if self.tasks.get(thread.task) is thread:
            self.herder.task_paused(thread.task, is_paused=is_paused)

    def task_noted(self, thread: TaskThread, note: str | None) -> None:
        self._post(self._task_noted, thread, note)

    def _task_noted(self, thread: TaskThread, note: str | None) -> None:
        if self.tasks.get(thread.task) is thread:
            log.info("task notes task=%s note=%s", thread.task, note)
            self.herder.noted(thread.task, note)

    def task_ended(self, thread: TaskThread, trace: str | None) -> None:
        self._post(self._task_ended, thread, trace)

    def _task_ended(self, thread: TaskThread, trace: str | None) -> None:
        if self.tasks.get(thread.task) is not thread:
            return
        del self.tasks[thread.task]
        log.info("task ended task=%s", thread.task)
        if thread.control.is_stopping or trace is None:
            self.herder.task_stopped(thread.task)
        else:
            self._keep_error(thread.task, trace)
            self.herder.task_failed(thread.task, trace, now_ms())

    def _keep_error(self, of: str | TaskId, trace: str) -> None:
        self.last_errors[of] = LastError(timestamp_ms(), trace)
        gone = [
            each for each in self.last_errors if not self.herder.is_configured(_connector(each))
        ]
        for each in gone:
            del self.last_errors[each]

    def require_current(self, thread: TaskThread) -> None:
        """Read the configurations to their end. Raises ConnectException if the task must stop."""
        try:
            looking = asyncio.run_coroutine_threadsafe(self._is_wanted(thread), self._loop)
            is_wanted = looking.result(_LOOK_SECONDS)
        except (RuntimeError, TimeoutError) as error:
            raise ConnectException("it is not known whether the task is still wanted") from error
        if not is_wanted:
            raise ConnectException(f"Task {thread.task} is not to run here any more")

    async def _is_wanted(self, thread: TaskThread) -> bool:
        assert self.neighbours is not None, thread.task
        await self.neighbours.catch_up()
        self.pump()
        return self.tasks.get(thread.task) is thread and not thread.control.is_stopping

    def topic_used(self, task: TaskId, topic: str) -> None:
        if self.environment.settings["topic.tracking.enable"]:
            self._post(self._topic_used, task, topic)

    def _topic_used(self, task: TaskId, topic: str) -> None:
        known = self.herder.statuses.topics.get(task.connector, {})
        if topic not in known and self.herder.is_configured(task.connector):
            used = TopicStatus(topic, task.connector, task.task, timestamp_ms())
            self.status_log.submit([topic_record(used)])

    def member_left(self, member: Member) -> None:
        self._post(self._departures.add, member)

    # --- from REST and the log ---

    async def write(self, records: Sequence[ConfigRecord]) -> None:
        """Write configurations and apply them at once."""
        await self.config_log.append(records)
        self.pump()

    async def write_status(self, records: Sequence[StatusRecord]) -> None:
        await self.status_log.append(records)
        self.pump()

    def replay_config(self, key: str, value: bytes | None) -> None:
        self.herder.replay_config(key, value)

    def replay_status(self, key: str, value: bytes | None) -> None:
        self.herder.replay_status(key, value)

    def owner_url(self, name: str | TaskId) -> str | None:
        """Return the URL of the worker that runs `name`; only a group's leader knows it."""
        return None if self.neighbours is None else self.neighbours.owner_url(name)

    def task_counts(self) -> dict[TaskId, TaskCounts]:
        """Return the counters of the tasks that run here."""
        works = {task: thread.work for task, thread in self.tasks.items()}
        return {task: work.counts for task, work in works.items() if work is not None}

    async def require_health(self) -> None:
        """Return when this worker is able to process requests. Raises ConnectException."""
        if self.neighbours is not None:
            await self.neighbours.wait_until_member()
            await self.neighbours.catch_up()

    async def prepare_offsets_change(self, name: str) -> None:
        """Wait until no task of a stopped connector writes, as far as this worker knows."""
        tasks = [task for task in self.tasks if task.connector == name]
        await self.wait_until_stopped((), tasks)
        if self.herder.is_exactly_once(self.herder.config.connector_configs.get(name, {})):
            assert self.neighbours is not None, name
            await self.neighbours.fence_now(name)

    async def wait_until_stopped(
        self, connectors: Collection[str], tasks: Collection[TaskId]
    ) -> None:
        """Wait until none of these connectors and tasks runs here."""
        while self.connectors.keys() & set(connectors) or self.tasks.keys() & set(tasks):
            self._task_gone.clear()
            await self._task_gone.wait()

    async def stop(self) -> None:
        """Stop everything; return when all threads have ended or are left behind."""
        self.herder.assign(Assignment(generation=self.herder.generation))
        self.pump()
        await self._idle.wait()
        await self._departures.stop()
