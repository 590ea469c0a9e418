"""Tasks that write in transactions (KIP-618): nothing of a generation starts before the one before
is fenced; and workers that were given up and live on write nothing.
"""

from dataclasses import dataclass, field
from random import Random

import pytest

from connect.herder import effects, requests
from connect.herder.config_records import Config, connector_records, task_count_record, task_records
from connect.herder.herder import Assignment, Herder, Phase
from connect.herder.names import ElsewhereError, RefusalError, TaskId
from tests.lib.seeds import seeds

C = "c"
T = TaskId(C, 0)
CONFIG = {"name": C}
LEADER = Assignment(frozenset({C}), frozenset({T}), 1, True, "http://me")
FOLLOWER = Assignment(frozenset(), frozenset({T}), 1, False, "http://leader")


def herder_with(assignment: Assignment, *, tasks: int = 1, counted: int | None = None) -> Herder:
    """Give a herder that has read a connector, its tasks, and perhaps how many there were."""
    herder = Herder("here:1", assignment, is_exactly_once=lambda _: True)
    herder.config.replay(*connector_records(C, CONFIG)[0])
    if counted is not None:
        herder.config.replay(*task_count_record(C, counted))
    for record in task_records(C, [{"n": str(each)} for each in range(tasks)]):
        herder.replay_config(*record)
    return herder


def steps(herder: Herder, now_ms: int = 0) -> list[effects.Effect]:
    quiet = (effects.WriteStatus, effects.StartConnector, effects.MakeTaskConfigs)
    return [each for each in herder.step(now_ms) if not isinstance(each, quiet)]


@pytest.mark.parametrize(
    ("counted", "tasks", "fenced"), [(None, 1, 0), (1, 1, 0), (2, 1, 2), (1, 2, 1), (0, 3, 0)]
)
def test_the_leader_fences_as_many_as_there_were(
    counted: int | None, tasks: int, fenced: int
) -> None:
    herder = herder_with(LEADER, tasks=tasks, counted=counted)
    generation = herder.config.task_generation(C)
    assert steps(herder) == [effects.FenceTasks(C, CONFIG, fenced, generation)]
    assert steps(herder) == []
    assert requests.fenced(herder, C, generation) == [task_count_record(C, tasks)]


def test_a_task_starts_when_the_record_is_read() -> None:
    herder = herder_with(LEADER, counted=2)
    generation = herder.config.task_generation(C)
    steps(herder)
    for record in requests.fenced(herder, C, generation):
        herder.replay_config(*record)
    herder.fencing_ended(C, generation, None, 0)
    assert steps(herder) == [effects.StartTask(T, CONFIG, {"n": "0"}, False, True)]


def test_a_follower_asks_the_leader_and_the_next_one_when_that_is_another() -> None:
    herder = herder_with(FOLLOWER)
    generation = herder.config.task_generation(C)
    assert steps(herder) == [effects.AskForFencing("http://leader", C, generation)]
    herder.assign(Assignment(frozenset(), frozenset({T}), 2, False, "http://other"))
    assert steps(herder) == [effects.AskForFencing("http://other", C, generation)]
    herder.assign(LEADER)
    assert steps(herder) == [effects.FenceTasks(C, CONFIG, 0, generation)]


def test_what_was_fenced_once_starts_again_without_it() -> None:
    herder = herder_with(FOLLOWER)
    herder.replay_config(*task_count_record(C, 1))
    assert [type(each) for each in steps(herder)] == [effects.StartTask]


def test_fencing_that_fails_fails_the_tasks_which_try_again() -> None:
    herder = herder_with(LEADER, counted=2)
    generation = herder.config.task_generation(C)
    steps(herder)
    herder.fencing_ended(C, generation, "brokers are away", 0)
    assert herder.tasks[T].phase is Phase.FAILED
    assert steps(herder) == []
    assert steps(herder, 1_000) == [effects.FenceTasks(C, CONFIG, 2, generation)]


def test_new_tasks_make_fencing_begin_anew() -> None:
    herder = herder_with(LEADER, counted=2)
    before = herder.config.task_generation(C)
    steps(herder)
    for record in task_records(C, [{"n": "new"}]):
        herder.replay_config(*record)
    now = herder.config.task_generation(C)
    assert steps(herder) == [effects.FenceTasks(C, CONFIG, 2, now)]
    with pytest.raises(RefusalError, match="new task configurations"):
        requests.fenced(herder, C, before)
    herder.fencing_ended(C, before, "late", 0)
    assert herder.tasks[T].phase is Phase.FENCING


def test_a_task_that_is_revoked_while_it_waits_is_gone_at_once() -> None:
    herder = herder_with(LEADER, counted=2)
    steps(herder)
    assert not herder.is_running_any([T])
    herder.assign(Assignment(is_leader=True, leader_url="http://me"))
    assert steps(herder) == [effects.StopConnector(C)]
    assert herder.tasks == {}


def test_only_the_leader_fences_and_only_sources() -> None:
    with pytest.raises(ElsewhereError):
        requests.require_fencing(herder_with(FOLLOWER), C)
    herder = herder_with(LEADER)
    with pytest.raises(RefusalError) as unknown:
        requests.require_fencing(herder, "other")
    assert unknown.value.status == 404
    herder.is_exactly_once = lambda _: False
    with pytest.raises(RefusalError) as sink:
        requests.require_fencing(herder, C)
    assert sink.value.status == 400


# --- many workers, some of which are given up and live on ---

PARTITIONS = 4


@dataclass
class Task:
    """A task as the shell runs it: takes its producer, looks whether it is wanted, then writes."""

    task: TaskId
    count: int
    worker: "Worker"
    epoch: int | None = None
    places: dict[int, int] = field(default_factory=dict)
    """Up to where its partitions are written, as far as it knows."""
    is_over: bool = False
    is_begun: bool = False


@dataclass
class Cluster:
    """The log, the producers' epochs, and what was committed of each partition of the source."""

    random: Random
    log: list[tuple[str, bytes | None]] = field(default_factory=list)
    epochs: dict[int, int] = field(default_factory=dict)
    written: dict[int, list[int]] = field(default_factory=dict)
    workers: list["Worker"] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    leader: "Worker | None" = None
    generation: int = 0
    fenced_count: int = 0

    def take_producer(self, number: int) -> int:
        self.epochs[number] = self.epochs.get(number, 0) + 1
        return self.epochs[number]

    def commit(self, task: Task) -> None:
        """One transaction: the next number of a partition, and that it is written."""
        partition = self.random.randrange(PARTITIONS)
        if partition % task.count != task.task.task:
            return
        if self.epochs[task.task.task] != task.epoch:
            self.fenced_count += 1
            task.is_over = True
            return
        place = task.places.get(partition, 0)
        self.written.setdefault(partition, []).append(place)
        task.places[partition] = place + 1

    def assign(self, alive: list["Worker"]) -> None:
        """Share the work among these; who is left out does not learn it."""
        self.generation += 1
        self.leader = alive[0]
        for each in alive:
            each.catch_up()
        tasks = alive[0].herder.config.task_ids(C)
        for index, worker in enumerate(alive):
            mine = frozenset(tasks[index :: len(alive)])
            connectors = frozenset({C} if index == 0 else ())
            worker.herder.assign(
                Assignment(connectors, mine, self.generation, index == 0, f"{self.leader.name}")
            )


@dataclass
class Worker:
    """Plays the shell of one worker."""

    cluster: Cluster
    name: str
    position: int = 0
    tasks: dict[TaskId, Task] = field(default_factory=dict)
    todo: list[effects.Effect] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.herder = Herder(self.name, Assignment(), is_exactly_once=lambda _: True)

    def catch_up(self) -> None:
        for record in self.cluster.log[self.position :]:
            self.herder.replay_config(*record)
        self.position = len(self.cluster.log)

    def write(self, records: list[tuple[str, bytes | None]]) -> None:
        # Its producer of configurations is fenced when it leads no longer.
        if self.cluster.leader is self:
            self.cluster.log += records
            self.catch_up()

    def step(self, now_ms: int) -> None:
        while found := self.herder.step(now_ms):
            for effect in found:
                self.perform(effect, now_ms)

    def perform(self, effect: effects.Effect, now_ms: int) -> None:
        match effect:
            case effects.StartConnector(name):
                self.herder.connector_started(name, "1", now_ms)
            case effects.StopConnector(name):
                self.herder.connector_stopped(name)
            case effects.MakeTaskConfigs(name, config):
                self.herder.task_configs_made(name, made_tasks(config))
            case effects.WriteConfig(records):
                self.write(list(records))
            case effects.StartTask(task, _, config):
                assert effect.is_exactly_once
                self.tasks[task] = Task(task, int(config["of"] or 0), self)
                self.cluster.tasks.append(self.tasks[task])
            case effects.FenceTasks() | effects.AskForFencing() | effects.StopTask():
                self.todo.append(effect)
            case _:
                pass

    def answer(self, now_ms: int) -> None:
        """Do one thing that was asked for, in any order."""
        if not self.todo:
            return
        effect = self.todo.pop(self.cluster.random.randrange(len(self.todo)))
        match effect:
            case effects.StopTask(task):
                if task in self.tasks:
                    self.tasks.pop(task).is_over = self.cluster.random.random() < 0.7
                self.herder.task_stopped(task)
            case effects.FenceTasks(name, _, producers, generation):
                for number in range(producers):
                    self.cluster.take_producer(number)
                self.catch_up()
                try:
                    self.write(list(requests.fenced(self.herder, name, generation)))
                except (RefusalError, ElsewhereError) as error:
                    self.herder.fencing_ended(name, generation, str(error), now_ms)
                else:
                    self.herder.fencing_ended(name, generation, None, now_ms)
            case effects.AskForFencing(_, name, generation):
                self.ask(name, generation, now_ms)

    def ask(self, name: str, generation: int, now_ms: int) -> None:
        leader = self.cluster.leader
        assert leader is not None
        leader.catch_up()
        if requests.require_fencing(leader.herder, name):
            leader.herder.request_fencing(name)
            self.todo.append(effects.AskForFencing(None, name, generation))
            return
        self.catch_up()
        self.herder.fencing_ended(name, generation, None, now_ms)

    def advance(self, task: Task, now_ms: int) -> None:
        """Let a task go on, as its own thread does, whatever its worker knows by now."""
        if task.is_over:
            return
        if task.epoch is None:
            task.epoch = self.cluster.take_producer(task.task.task)
        elif not task.is_begun:
            self.catch_up()
            self.step(now_ms)
            stops = any(isinstance(each, effects.StopTask) for each in self.todo)
            if self.tasks.get(task.task) is not task or stops:
                task.is_over = True
                return
            written = self.cluster.written
            task.places = {each: len(written.get(each, ())) for each in range(PARTITIONS)}
            task.is_begun = True
        else:
            self.cluster.commit(task)


def made_tasks(config: Config) -> list[Config]:
    count = config["n"] or "0"
    return [{"number": str(each), "of": count} for each in range(int(count))]


@pytest.mark.parametrize("seed", seeds(100, fast=40))
def test_whoever_is_given_up_and_lives_on_every_number_is_written_once(seed: int) -> None:
    """Three workers; tasks come and go, workers are cut off and go on with what they had."""
    random = Random(seed)
    cluster = Cluster(random)
    cluster.workers = [Worker(cluster, f"w{each}") for each in range(3)]
    alive = list(cluster.workers)
    now_ms = 0
    cluster.log += connector_records(C, {**CONFIG, "n": "2"})
    cluster.assign(alive)
    for _ in range(900):
        now_ms += 200
        match random.randrange(40):
            case 0:
                new = {**CONFIG, "n": str(random.randrange(1, PARTITIONS + 1))}
                cluster.log += connector_records(C, new)
            case 1:
                alive = random.sample(cluster.workers, random.randrange(1, 4))
                cluster.assign(alive)
            case 2:
                cluster.assign(alive)
            case number:
                # A worker that lost its tasks goes on with old state, and reads no records.
                worker = random.choice(alive if number < 30 else cluster.workers)
                if worker in alive and number % 2:
                    worker.catch_up()
                worker.step(now_ms)
                if worker in alive:
                    worker.answer(now_ms)
        if cluster.tasks:
            task = random.choice(cluster.tasks[-12:])
            task.worker.advance(task, now_ms)
            failed = task.is_over and task.worker.tasks.get(task.task) is task
            if failed:
                del task.worker.tasks[task.task]
                task.worker.herder.task_failed(task.task, "fenced", now_ms)
    for places in cluster.written.values():
        assert places == list(range(len(places)))
    assert sum(map(len, cluster.written.values())) > 0
