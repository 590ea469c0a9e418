"""The herder of one worker: what runs here, what must run here, and the effects between the two.

Inputs are records that were read (`replay_config`, `replay_status`), assignments, and the outcomes
of effects (`connector_started`, `task_stopped`...). They only change state. `step` compares and
returns effects; a second call without new input returns none. The package's docstring has the
table and the invariants.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar

from connect.herder import effects
from connect.herder.config_records import Config, RestartRequest, task_records, with_variables
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

NamedT = TypeVar("NamedT", str, TaskId)


class Phase(Enum):
    """The phase of a connector or task on this worker."""

    FENCING = "fencing"
    """The task waits until the producers of all earlier tasks are fenced (KIP-618)."""
    STARTING = "starting"
    RUNNING = "running"
    FAILED = "failed"
    STOPPING = "stopping"


_NOTHING_RUNS: Final = (Phase.FENCING, Phase.FAILED)

Generation = tuple[int, int]
"""The version of the configuration, and the number of requested restarts."""


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
    """The connectors and tasks that a worker of a group must run, and the group's leader."""

    connectors: frozenset[str] = frozenset()
    tasks: frozenset[TaskId] = frozenset()
    generation: int = 0
    is_leader: bool = False
    leader_url: str | None = None


@dataclass(slots=True)
class Herder:
    """Decides for one worker. A standalone worker has no assignment: everything runs on it."""

    worker_id: str
    assignment: Assignment | None = None
    is_caught_up: bool = True
    """True once the log is read to its end at the start: restart requests before it are old."""
    is_exactly_once: Callable[[Config], bool] = lambda _: False
    """Returns whether the tasks of a connector with this configuration write in transactions."""
    config: ConfigState = field(default_factory=ConfigState)
    statuses: StatusState = field(default_factory=StatusState)
    connectors: dict[str, Instance] = field(default_factory=dict)
    tasks: dict[TaskId, Instance] = field(default_factory=dict)
    _restart_requests: dict[Named, int] = field(default_factory=dict)
    _restarts: dict[Named, Restarts] = field(default_factory=dict)
    _said: dict[Named, State] = field(default_factory=dict)
    """The last state that this worker wrote of each name; it may not have been read back yet."""
    _forgotten_topics: set[TopicStatus] = field(default_factory=set)
    """Topics whose status was removed with their connectors; grows by one entry for each."""
    _emptied: set[str] = field(default_factory=set)
    """Stopped connectors whose tasks were removed by a record that is not read back yet."""
    _fencings: dict[str, int] = field(default_factory=dict)
    """By connector, the generation of tasks for which a fencing is under way."""
    _effects: list[Effect] = field(default_factory=list)

    # --- this worker's role ---

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
        """True if `step` should be called without waiting for the next input."""
        return bool(self._effects)

    def require_leader(self, message: str) -> None:
        """Raises ElsewhereError when another worker is the leader."""
        if not self.is_leader:
            raise ElsewhereError(message, self.leader_url)

    def has(self, name: Named) -> bool:
        """Return whether a connector or a task is assigned to this worker."""
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
        """Write a status again when an earlier owner of `name` has overwritten it.

        A worker that was frozen or cut off may stop a task after this worker has started it.
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
            # Do not wait for the fencings that the earlier leader was asked for.
            self._fencings.clear()

    def _on_restart_request(self, request: RestartRequest) -> None:
        for name in restart_plan(self, request):
            if self.has(name):
                self.request_restart(name)

    def request_restart(self, name: Named) -> None:
        """Stop and start a connector or task of this worker."""
        self._restart_requests[name] = self._restart_requests.get(name, 0) + 1
        self._restarts.pop(name, None)
        self._say(name, State.RESTARTING)

    # --- outcomes of connectors ---

    def connector_started(self, name: str, version: str, now_ms: int) -> None:
        instance = self.connectors.get(name)
        if instance is None or instance.phase is not Phase.STARTING:
            return
        instance.phase, instance.version = Phase.RUNNING, version
        self._restarts.setdefault(name, Restarts()).started(now_ms)
        self._say(name, State.RUNNING)
        self.reconfigure(name)

    def connector_failed(self, name: str, trace: str, now_ms: int) -> None:
        """Note that a connector failed to start or while it ran; it has stopped."""
        self._failed(name, self.connectors.get(name), trace, now_ms)

    def connector_stopped(self, name: str) -> None:
        if self.connectors.pop(name, None) and self.is_configured(name) and not self.has(name):
            self._say(name, State.UNASSIGNED)

    def reconfigure(self, name: str) -> None:
        """Ask a connector to make its task configurations again, if it runs here."""
        instance = self.connectors.get(name)
        if instance is not None and instance.phase is Phase.RUNNING:
            config = self.config.connector_configs.get(name, {})
            self._effects.append(effects.MakeTaskConfigs(name, config))

    def task_configs_made(self, name: str, configs: Iterable[Config]) -> None:
        """Write a connector's task configurations, unless the same ones are written already."""
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

    # --- outcomes of tasks ---

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
        """Note the text that a connector or task reports of itself; shown while it runs."""
        instance = self.connectors.get(name) if isinstance(name, str) else self.tasks.get(name)
        if instance is None or instance.note == note:
            return
        instance.note = note
        said = self._said.get(name)
        if instance.phase is Phase.RUNNING and said in (State.RUNNING, State.PAUSED):
            self._say(name, said)

    def task_failed(self, task: TaskId, trace: str, now_ms: int) -> None:
        """Note that a task failed to start or while it ran; its thread has ended."""
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

    # --- fencing ---

    def request_fencing(self, name: str) -> None:
        """Fence the producers of a connector's earlier tasks, unless that is under way."""
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
        """Return whether the fencing for this generation is still under way."""
        return self._fencings.get(name) == generation

    def fencing_ended(self, name: str, generation: int, trace: str | None, now_ms: int) -> None:
        """Note the end of a fencing. Its record has been read, or `trace` says why it failed."""
        if self._fencings.get(name) != generation:
            return
        del self._fencings[name]
        for task, instance in self.tasks.items():
            if trace and task.connector == name and instance.phase is Phase.FENCING:
                self._failed(task, instance, trace, now_ms)

    # --- effects ---

    def step(self, now_ms: int) -> list[Effect]:
        """Return the effects to perform now."""
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
        """Return when `step` must be called without new input; None for never."""
        times = [
            each.restart_at_ms
            for each in (*self.connectors.values(), *self.tasks.values())
            if each.phase is Phase.FAILED and each.restart_at_ms is not None
        ]
        return min(times, default=None)

    def is_running_any(self, names: Iterable[Named]) -> bool:
        """Return whether any of these is starting, running or stopping here."""
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
            # The target state and the shown state have the same name.
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
        """Start a task, or first fence the earlier tasks."""
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
            # Nothing runs in these phases, so there is nothing to stop.
            del instances[name]
        elif instance.phase is not Phase.STOPPING:
            instance.phase = Phase.STOPPING
            self._effects.append(effect)

    def _restart_if_due(self, instances: dict[NamedT, Instance], name: NamedT, now_ms: int) -> None:
        due_ms = instances[name].restart_at_ms
        if instances[name].phase is Phase.FAILED and due_ms is not None and due_ms <= now_ms:
            del instances[name]
            self._say(name, State.RESTARTING)

    # --- statuses ---

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
        """Remove tasks of stopped connectors, and statuses of names that are not configured."""
        for connector in self.config.connector_configs:
            # The connector's worker wrote these tasks before it read that the connector stops.
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
                    # Only once: the record may not have been read back yet.
                    if status not in self._forgotten_topics:
                        self._forgotten_topics.add(status)
                        record = topic_removal_record(connector, status.topic)
                        self._effects.append(effects.WriteStatus(record))


def restart_plan(herder: Herder, request: RestartRequest) -> list[Named]:
    """Return the names that a restart request concerns, by their shown states."""
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
        # Another worker, which does not check this setting, wrote the configuration.
        return DEFAULT_MAX_DELAY_MS
