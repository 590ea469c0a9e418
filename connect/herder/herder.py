"""The herder of one worker: what runs here, what shall run, and the way from one to the other.

Inputs are records that were read (`replay_config`, `replay_status`), assignments, and what became
of effects (`connector_started`, `task_stopped`...). They only change state. `step` compares and
returns effects; calling it once too often does nothing. See the package for the table and the
invariants.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar

from connect.herder import effects
from connect.herder.config_records import Config, RestartRequest, task_records
from connect.herder.config_state import ConfigState
from connect.herder.effects import Effect
from connect.herder.names import ElsewhereError, State, TargetState, TaskId
from connect.herder.restarts import DEFAULT_MAX_DELAY_MS, SETTING, Restarts
from connect.herder.status import (
    Named,
    Status,
    StatusState,
    TopicStatus,
    status_record,
    topic_removal_record,
)
from connect.herder.variables import with_variables

NamedT = TypeVar("NamedT", str, TaskId)


class Phase(Enum):
    """What this worker does with a connector or a task."""

    FENCING = "fencing"
    """It waits until nothing of the tasks before it can write any more (KIP-618)."""
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    STOPPING = "stopping"


_NOTHING_RUNS: Final = (Phase.FENCING, Phase.FAILED)

Generation = tuple[int, int]
"""Which configuration something runs with, and how often it was restarted on request."""


@dataclass(slots=True)
class Instance:
    """A connector or a task on this worker."""

    generation: Generation
    phase: Phase = Phase.STARTING
    is_paused: bool = False
    version: str | None = None
    restart_at_ms: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a worker of a group shall run, and who leads."""

    connectors: frozenset[str] = frozenset()
    tasks: frozenset[TaskId] = frozenset()
    generation: int = 0
    is_leader: bool = False
    leader_url: str | None = None


@dataclass(slots=True)
class Herder:
    """One worker's part. Standalone there is no assignment: everything runs here."""

    worker_id: str
    assignment: Assignment | None = None
    is_caught_up: bool = True
    """Whether the log was read to where it ended when we began: before, restarts are old news."""
    is_exactly_once: Callable[[Config], bool] = lambda _: False
    """Whether a connector of this configuration has tasks that write in transactions."""
    config: ConfigState = field(default_factory=ConfigState)
    statuses: StatusState = field(default_factory=StatusState)
    connectors: dict[str, Instance] = field(default_factory=dict)
    tasks: dict[TaskId, Instance] = field(default_factory=dict)
    _restart_requests: dict[Named, int] = field(default_factory=dict)
    _restarts: dict[Named, Restarts] = field(default_factory=dict)
    _said: dict[Named, State] = field(default_factory=dict)
    """What we wrote last of each; what was written need not have been read yet."""
    _forgotten_topics: set[TopicStatus] = field(default_factory=set)
    """Topics that were forgotten with their connectors; grows by one for each of these."""
    _emptied: set[str] = field(default_factory=set)
    """Stopped connectors whose tasks were taken back and are not read to be gone yet."""
    _fencings: dict[str, int] = field(default_factory=dict)
    """Of which tasks' generation fencing was asked for and has not ended."""
    _effects: list[Effect] = field(default_factory=list)

    # --- who we are ---

    @property
    def is_leader(self) -> bool:
        return self.assignment is None or self.assignment.is_leader

    @property
    def leader_url(self) -> str | None:
        return None if self.assignment is None else self.assignment.leader_url

    @property
    def generation(self) -> int:
        return 0 if self.assignment is None else self.assignment.generation

    @property
    def has_effects(self) -> bool:
        """Whether what was read is to be answered without waiting for the next input."""
        return bool(self._effects)

    def require_leader(self, message: str) -> None:
        """Raises ElsewhereError when another worker has to decide."""
        if not self.is_leader:
            raise ElsewhereError(message, self.leader_url)

    def has(self, name: Named) -> bool:
        """Say whether a connector or a task is assigned to this worker."""
        if self.assignment is None:
            return True
        mine: frozenset[str] | frozenset[TaskId] = self.assignment.tasks
        if isinstance(name, str):
            mine = self.assignment.connectors
        return name in mine

    def is_configured(self, name: Named) -> bool:
        if isinstance(name, str):
            return name in self.config.connector_configs
        return self.config.task_config(name) is not None

    # --- what is read ---

    def replay_config(self, key: str, value: bytes | None) -> None:
        request = self.config.replay(key, value)
        if request is None or not self.is_caught_up:
            return
        if isinstance(request, RestartRequest):
            self._on_restart_request(request)
        else:
            self._effects.append(effects.SetLogger(*request))

    def replay_status(self, key: str, value: bytes | None) -> None:
        self.statuses.replay(key, value)
        for name in (key.removeprefix("status-connector-"), _task_of(key)):
            if value is None or not name:
                continue
            if self._said.get(name) is State.DESTROYED:
                del self._said[name]
            self._contradict(name)

    def _contradict(self, name: Named) -> None:
        """Say again that something runs here when a worker that had it before speaks last.

        One that was frozen or cut off stops what it ran after another has taken it over.
        """
        shown, said = self.statuses.of(name), self._said.get(name)
        if shown is None or shown.worker_id == self.worker_id or not self._runs(name):
            return
        if shown.state in (State.UNASSIGNED, State.FAILED) and said is not None:
            self._say(name, said)

    def _runs(self, name: Named) -> bool:
        instance = self.connectors.get(name) if isinstance(name, str) else self.tasks.get(name)
        return self.has(name) and instance is not None and instance.phase is Phase.RUNNING

    def assign(self, assignment: Assignment) -> None:
        before = self.is_leader, self.leader_url
        self.assignment = assignment
        if before != (self.is_leader, self.leader_url):
            # Who was asked to fence need not answer any more.
            self._fencings.clear()

    def _on_restart_request(self, request: RestartRequest) -> None:
        for name in restart_plan(self, request):
            if self.has(name):
                self.request_restart(name)

    def request_restart(self, name: Named) -> None:
        """Have something of ours stopped and started."""
        self._restart_requests[name] = self._restart_requests.get(name, 0) + 1
        self._restarts.pop(name, None)
        self._say(name, State.RESTARTING)

    # --- what becomes of connectors ---

    def connector_started(self, name: str, version: str, now_ms: int) -> None:
        instance = self.connectors.get(name)
        if instance is None or instance.phase is not Phase.STARTING:
            return
        instance.phase, instance.version = Phase.RUNNING, version
        self._restarts.setdefault(name, Restarts()).started(now_ms)
        self._say(name, State.RUNNING)
        self.reconfigure(name)

    def connector_failed(self, name: str, trace: str, now_ms: int) -> None:
        """A connector could not start, or said that it cannot go on; it is stopped by now."""
        self._failed(name, self.connectors.get(name), trace, now_ms)

    def connector_stopped(self, name: str) -> None:
        if self.connectors.pop(name, None) and self.is_configured(name) and not self.has(name):
            self._say(name, State.UNASSIGNED)

    def reconfigure(self, name: str) -> None:
        """Have a connector make its tasks anew, if it runs here."""
        instance = self.connectors.get(name)
        if instance is not None and instance.phase is Phase.RUNNING:
            config = self.config.connector_configs.get(name, {})
            self._effects.append(effects.MakeTaskConfigs(name, config))

    def task_configs_made(self, name: str, configs: Iterable[Config]) -> None:
        """Have a connector's tasks written, unless they are what is written already."""
        instance = self.connectors.get(name)
        if instance is None or instance.generation != self._wanted_connector(name):
            return
        config = self.config.connector_configs[name]
        made = [with_variables(config, each) for each in configs]
        is_same = made == self.config.task_configs(name) and name not in self.config.inconsistent
        if is_same and self.config.applied_configs.get(name) == config:
            return
        if self.is_leader:
            self._effects.append(effects.WriteConfig(tuple(task_records(name, made))))
        else:
            self._effects.append(effects.SendTaskConfigs(self.leader_url, name, tuple(made)))

    # --- what becomes of tasks ---

    def task_started(self, task: TaskId, version: str, now_ms: int) -> None:
        instance = self.tasks.get(task)
        if instance is None or instance.phase is not Phase.STARTING:
            return
        instance.phase, instance.version = Phase.RUNNING, version
        self._restarts.setdefault(task, Restarts()).started(now_ms)
        self._say(task, State.PAUSED if instance.is_paused else State.RUNNING)

    def task_paused(self, task: TaskId, *, is_paused: bool) -> None:
        instance = self.tasks.get(task)
        if instance is not None and instance.phase is Phase.RUNNING:
            self._say(task, State.PAUSED if is_paused else State.RUNNING)

    def noted(self, name: Named, note: str | None) -> None:
        """A connector or a task says something of itself; shown for as long as it runs."""
        instance = self.connectors.get(name) if isinstance(name, str) else self.tasks.get(name)
        if instance is None or instance.note == note:
            return
        instance.note = note
        said = self._said.get(name)
        if instance.phase is Phase.RUNNING and said in (State.RUNNING, State.PAUSED):
            self._say(name, said)

    def task_failed(self, task: TaskId, trace: str, now_ms: int) -> None:
        """A task could not start or go on; its thread has ended."""
        self._failed(task, self.tasks.get(task), trace, now_ms)

    def task_stopped(self, task: TaskId) -> None:
        if self.tasks.pop(task, None) and self.is_configured(task) and not self.has(task):
            self._say(task, State.UNASSIGNED)

    def _failed(self, name: Named, instance: Instance | None, trace: str, now_ms: int) -> None:
        if instance is None or instance.phase is Phase.STOPPING:
            return
        connector = name if isinstance(name, str) else name.connector
        config = self.config.connector_configs.get(connector, {})
        restarts = self._restarts.setdefault(name, Restarts())
        instance.phase = Phase.FAILED
        instance.restart_at_ms = restarts.failed(now_ms, _max_delay_ms(config))
        self._say(name, State.FAILED, trace)

    # --- what may still write ---

    def request_fencing(self, name: str) -> None:
        """Have the producers of a connector's earlier tasks shut out, unless that is under way."""
        generation = self.config.task_generation(name)
        if self._fencings.get(name) == generation:
            return
        self._fencings[name] = generation
        if self.is_leader:
            config = self.config.connector_configs[name]
            count = self.config.producers_to_fence(name)
            self._effects.append(effects.FenceTasks(name, config, count, generation))
        else:
            self._effects.append(effects.AskForFencing(self.leader_url, name, generation))

    def is_fencing(self, name: str, generation: int) -> bool:
        """Say whether somebody still waits for that fencing to end."""
        return self._fencings.get(name) == generation

    def fencing_ended(self, name: str, generation: int, trace: str | None, now_ms: int) -> None:
        """The record that says so is read by now; with a trace it could not be done."""
        if self._fencings.get(name) != generation:
            return
        del self._fencings[name]
        for task, instance in self.tasks.items():
            if trace and task.connector == name and instance.phase is Phase.FENCING:
                self._failed(task, instance, trace, now_ms)

    # --- the way there ---

    def step(self, now_ms: int) -> list[Effect]:
        """Return what is to be done now."""
        for name in sorted({*self.connectors, *self.config.connector_configs}):
            self._step_connector(name, now_ms)
        wanted = [task for name in self.config.connectors() for task in self.config.task_ids(name)]
        for task in sorted({*self.tasks, *wanted}):
            self._step_task(task, now_ms)
        if self.is_leader:
            self._tidy()
        done, self._effects = self._effects, []
        return done

    def next_deadline_ms(self) -> int | None:
        """Tell when `step` has something to do if nothing else happens."""
        times = [
            each.restart_at_ms
            for each in (*self.connectors.values(), *self.tasks.values())
            if each.phase is Phase.FAILED and each.restart_at_ms is not None
        ]
        return min(times, default=None)

    def is_running_any(self, names: Iterable[Named]) -> bool:
        """Say whether anything of these is still starting, running or stopping here."""
        live = {name for name, each in self.connectors.items() if each.phase not in _NOTHING_RUNS}
        tasks = {task for task, each in self.tasks.items() if each.phase not in _NOTHING_RUNS}
        return any(name in live or name in tasks for name in names)

    def _wanted_connector(self, name: str) -> Generation | None:
        is_wanted = self.is_configured(name) and self.has(name)
        if not is_wanted or self.config.target_state(name) is not TargetState.STARTED:
            return None
        return self.config.connector_generation(name), self._restart_requests.get(name, 0)

    def _wanted_task(self, task: TaskId) -> Generation | None:
        is_wanted = self.is_configured(task) and self.has(task)
        if not is_wanted or self.config.target_state(task.connector) is TargetState.STOPPED:
            return None
        return self.config.task_generation(task.connector), self._restart_requests.get(task, 0)

    def _step_connector(self, name: str, now_ms: int) -> None:
        wanted = self._wanted_connector(name)
        instance = self.connectors.get(name)
        if instance is not None and instance.generation != wanted:
            self._stop(self.connectors, name, effects.StopConnector(name))
        elif instance is not None:
            self._restart_if_due(self.connectors, name, now_ms)
        if name in self.connectors:
            return
        if wanted is not None:
            self.connectors[name] = Instance(wanted)
            config = self.config.connector_configs[name]
            self._effects.append(effects.StartConnector(name, config))
        elif self.is_configured(name) and self.has(name):
            # A target state and what it shows have the same name.
            self._say_once(name, State(self.config.target_state(name).value))

    def _step_task(self, task: TaskId, now_ms: int) -> None:
        wanted = self._wanted_task(task)
        is_paused = self.config.target_state(task.connector) is TargetState.PAUSED
        instance = self.tasks.get(task)
        if instance is not None and instance.generation != wanted:
            self._stop(self.tasks, task, effects.StopTask(task))
        elif instance is not None:
            self._restart_if_due(self.tasks, task, now_ms)
            if instance.phase is Phase.RUNNING and instance.is_paused != is_paused:
                instance.is_paused = is_paused
                self._effects.append(effects.PauseTask(task, is_paused))
        instance = self.tasks.get(task)
        if wanted is not None and (instance is None or instance.phase is Phase.FENCING):
            self._start_task(task, wanted, is_paused=is_paused)

    def _start_task(self, task: TaskId, wanted: Generation, *, is_paused: bool) -> None:
        """Start a task, or have everything fenced first that it must not meet."""
        name, config = task.connector, self.config.task_config(task)
        assert config is not None, task
        connector_config = self.config.connector_configs[name]
        is_exactly_once = self.is_exactly_once(connector_config)
        if is_exactly_once and name in self.config.pending_fencing:
            self.tasks[task] = Instance(wanted, Phase.FENCING)
            self.request_fencing(name)
            return
        self.tasks[task] = Instance(wanted, is_paused=is_paused)
        self._effects.append(
            effects.StartTask(task, connector_config, config, is_paused, is_exactly_once)
        )

    def _stop(self, instances: dict[NamedT, Instance], name: NamedT, effect: Effect) -> None:
        instance = instances[name]
        if instance.phase in _NOTHING_RUNS:
            # Nothing of it is there to stop.
            del instances[name]
        elif instance.phase is not Phase.STOPPING:
            instance.phase = Phase.STOPPING
            self._effects.append(effect)

    def _restart_if_due(self, instances: dict[NamedT, Instance], name: NamedT, now_ms: int) -> None:
        due_ms = instances[name].restart_at_ms
        if instances[name].phase is Phase.FAILED and due_ms is not None and due_ms <= now_ms:
            del instances[name]
            self._say(name, State.RESTARTING)

    # --- what is said ---

    def _say_once(self, name: Named, state: State) -> None:
        if self._said.get(name) is not state:
            self._say(name, state)

    def _say(self, name: Named, state: State, trace: str | None = None) -> None:
        self._said[name] = state
        instance = self.connectors.get(name) if isinstance(name, str) else self.tasks.get(name)
        before = self.statuses.of(name)
        known = None if before is None else before.version
        restarts = self._restarts.get(name)
        status = Status(
            state,
            self.worker_id,
            self.generation,
            trace,
            known if instance is None or instance.version is None else instance.version,
            0 if restarts is None else restarts.count,
            None if instance is None or trace is not None else instance.note,
        )
        self._effects.append(effects.WriteStatus(status_record(name, status)))

    def _tidy(self) -> None:
        """Take back tasks that were made too late, and what is shown of things that are gone."""
        for connector in self.config.connector_configs:
            # Made by a connector's worker that had not read yet that it is to stop.
            is_stopped = self.config.target_state(connector) is TargetState.STOPPED
            if not is_stopped or not self.config.task_configs(connector):
                self._emptied.discard(connector)
            elif connector not in self._emptied:
                self._emptied.add(connector)
                self._effects.append(effects.WriteConfig(tuple(task_records(connector, []))))
        for name in list(self.statuses.everything()):
            is_here = name in self.connectors if isinstance(name, str) else name in self.tasks
            if not is_here and not self.is_configured(name):
                self._restarts.pop(name, None)
                self._say_once(name, State.DESTROYED)
        for connector, topics in self.statuses.topics.items():
            if connector not in self.config.connector_configs:
                for status in topics.values():
                    # Once: that it was written need not have been read yet.
                    if status not in self._forgotten_topics:
                        self._forgotten_topics.add(status)
                        record = topic_removal_record(connector, status.topic)
                        self._effects.append(effects.WriteStatus(record))


def restart_plan(herder: Herder, request: RestartRequest) -> list[Named]:
    """List what a restart request means, by what is shown."""
    shown = herder.statuses
    names: list[Named] = [request.connector] if request.connector in shown.connectors else []
    if request.include_tasks:
        names += [task for task, _ in shown.tasks_of(request.connector)]
    return [name for name in names if not request.only_failed or _is_failed(shown.of(name))]


def _is_failed(status: Status | None) -> bool:
    return status is not None and status.state is State.FAILED


def _task_of(key: str) -> TaskId | None:
    return TaskId.parse(key.removeprefix("status-task-"))


def _max_delay_ms(config: Config) -> int:
    text = config.get(SETTING)
    try:
        return DEFAULT_MAX_DELAY_MS if text is None else int(text)
    except ValueError:
        # The configuration was written by a worker that does not know the setting.
        return DEFAULT_MAX_DELAY_MS
