"""A whole cluster of workers in one process: herders, assignor and group, on one log, from a seed.

Every worker has the herder and the assignor that a real one has; the shell is played. Workers are
killed and start again from the log, freeze until the group gives them up, and come back; meanwhile
connectors are configured, paused and deleted. After every event the invariants are checked: of all
that the group counts as members no two run the same, and no sink commits an offset before one that
was committed. At the end everything runs once, in equal parts, and a lost worker moves nothing but
what it ran.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from connect.group.assignor import Assignor
from connect.group.protocol import Share, union
from connect.herder import effects
from connect.herder.config_records import (
    ConfigRecord,
    connector_records,
    removal_records,
    target_state_record,
    task_records,
)
from connect.herder.herder import Assignment, Herder
from connect.herder.names import State, TargetState, TaskId
from connect.herder.status import Named, StatusRecord

CONNECTORS = 20
TASKS = 3
WORKERS = 3
DELAY_MS = 2_000
_EVENTS = 40


@dataclass
class Worker:
    """One worker: its herder, and what the played shell runs."""

    name: str
    herder: Herder
    assignor: Assignor = field(default_factory=lambda: Assignor(DELAY_MS))
    share: Share = field(default_factory=Share)
    revoked: Share = field(default_factory=Share)
    running: dict[Named, str] = field(default_factory=dict)
    started: set[TaskId] = field(default_factory=set)
    positions: dict[TaskId, int] = field(default_factory=dict)
    read_configs: int = 0
    read_statuses: int = 0
    is_frozen: bool = False
    has_led: bool = False

    def has_stopped(self, share: Share) -> bool:
        return not self.herder.is_running_any([*share.connectors, *share.tasks])


class Simulation:
    """Owns the logs, the workers and who of them is a member."""

    def __init__(self, seed: int, *, rejoins_early: bool = False) -> None:
        self.random = Random(seed)
        self.rejoins_early = rejoins_early
        """The planted bug: a worker joins again before what it has to give up has stopped."""
        self.now_ms = 0
        self.configs: list[ConfigRecord] = []
        self.statuses: list[StatusRecord] = []
        self.committed: dict[TaskId, int] = {}
        self.workers: dict[str, Worker] = {}
        self.members: set[str] = set()
        self.generation = 0
        self.due_ms: int | None = 0
        self.decided_for: Share | None = None

    # --- workers ---

    def start(self, name: str) -> None:
        worker = Worker(name, Herder(name, Assignment()))
        self.workers[name] = worker
        self.read(worker)
        self.members.add(name)
        self.due_ms = self.now_ms

    def kill(self, name: str) -> None:
        del self.workers[name]
        self.leave(name)

    def leave(self, name: str) -> None:
        self.members.discard(name)
        self.due_ms = self.now_ms

    def freeze(self, name: str) -> None:
        """Have a worker stand still for longer than its session: the group gives it up."""
        self.workers[name].is_frozen = True
        self.leave(name)

    def thaw(self, name: str) -> None:
        """It is told that it was expelled, and drops everything before it joins again."""
        worker = self.workers[name]
        worker.is_frozen = False
        worker.revoked, worker.share, worker.has_led = worker.share, Share(), False
        worker.herder.assign(Assignment(generation=self.generation))
        self.step(worker)
        for running in list(worker.running):
            self.answer(worker, running, may_fail=False)
        while worker.running:
            self.answer(worker, next(iter(worker.running)), may_fail=False)
        self.members.add(name)
        self.due_ms = self.now_ms

    def read(self, worker: Worker) -> None:
        for key, value in self.configs[worker.read_configs :]:
            worker.herder.replay_config(key, value)
        for record in self.statuses[worker.read_statuses :]:
            worker.herder.replay_status(*record)
        worker.read_configs, worker.read_statuses = len(self.configs), len(self.statuses)

    # --- the group ---

    def leader(self) -> Worker | None:
        led = [name for name in sorted(self.members) if self.workers[name].herder.is_leader]
        return self.workers[led[0]] if led else None

    def maybe_rebalance(self) -> None:
        """Play a round, when there is a reason and every member has given up what it had to."""
        leader = self.leader() or (self.workers[min(self.members)] if self.members else None)
        if leader is None:
            return
        is_changed = self.decided_for is not None and self.configured(leader) != self.decided_for
        is_due = self.due_ms is not None and self.now_ms >= self.due_ms
        members = [self.workers[name] for name in sorted(self.members)]
        have_stopped = all(each.has_stopped(each.revoked) for each in members)
        must_follow = bool(union([each.revoked for each in members]))
        if not (is_changed or is_due or must_follow) or not (have_stopped or self.rejoins_early):
            return
        for member in members:
            self.read(member)
        self.decide(leader, members)

    def configured(self, leader: Worker) -> Share:
        config = leader.herder.config
        tasks = [task for name in config.connectors() for task in config.task_ids(name)]
        return Share(frozenset(config.connectors()), frozenset(tasks))

    def decide(self, leader: Worker, members: list[Worker]) -> None:
        self.generation += 1
        if not leader.has_led:
            leader.assignor.forget()
        self.decided_for = self.configured(leader)
        shares = {each.name: each.share for each in members}
        decided = leader.assignor.assign(self.decided_for, shares, self.now_ms)
        self.due_ms = self.now_ms + decided.delay_ms if decided.delay_ms else None
        for each in members:
            each.revoked = decided.revoked[each.name]
            each.share = each.share - each.revoked | decided.assigned[each.name]
            each.has_led = each is leader
            each.herder.assign(
                Assignment(
                    each.share.connectors,
                    each.share.tasks,
                    self.generation,
                    each.has_led,
                    leader.name,
                )
            )
            self.step(each)

    # --- the played shell ---

    def step(self, worker: Worker) -> None:
        for _ in range(50):
            found = worker.herder.step(self.now_ms)
            if not found:
                return
            for effect in found:
                self.do(worker, effect)
        raise AssertionError(f"{worker.name} never comes to rest")

    def do(self, worker: Worker, effect: effects.Effect) -> None:
        is_member = worker.name in self.members
        match effect:
            case effects.StartConnector(name=name) | effects.StartTask(task=name):
                assert name not in worker.running, f"{name} runs twice on {worker.name}"
                worker.running[name] = "starting"
                if isinstance(name, TaskId):
                    worker.started.add(name)
                    worker.positions[name] = self.committed.get(name, 0)
            case effects.StopConnector(name=name) | effects.StopTask(task=name):
                worker.running[name] = "stopping"
            case effects.PauseTask(task=task, is_paused=is_paused):
                worker.herder.task_paused(task, is_paused=is_paused)
            case effects.MakeTaskConfigs(name=name, config=config):
                count = int(config.get("tasks") or TASKS)
                worker.herder.task_configs_made(name, [{"n": str(n)} for n in range(count)])
            case effects.WriteConfig(records=records) if is_member:
                self.configs += records
                self.read(worker)
            case effects.SendTaskConfigs(connector=name, configs=configs) if is_member:
                if self.leader() is not None and name in worker.herder.config.connector_configs:
                    self.configs += task_records(name, list(configs))
                    self.read(worker)
            case effects.WriteStatus(record=record) if is_member:
                self.statuses.append(record)
                self.read(worker)
            case _:
                pass

    def answer(self, worker: Worker, name: Named, *, may_fail: bool = True) -> None:
        """Have something that runs come a step further."""
        herder, doing = worker.herder, worker.running[name]
        if doing == "stopping":
            del worker.running[name]
            if isinstance(name, TaskId):
                herder.task_stopped(name)
            else:
                herder.connector_stopped(name)
        elif may_fail and self.random.random() < 0.05:
            del worker.running[name]
            if isinstance(name, TaskId):
                herder.task_failed(name, "why", self.now_ms)
            else:
                herder.connector_failed(name, "why", self.now_ms)
        elif doing == "starting":
            worker.running[name] = "up"
            if isinstance(name, TaskId):
                herder.task_started(name, "1", self.now_ms)
            else:
                herder.connector_started(name, "1", self.now_ms)
        elif isinstance(name, TaskId) and worker.name in self.members:
            self.commit(worker, name)
        self.step(worker)

    def commit(self, worker: Worker, task: TaskId) -> None:
        worker.positions[task] += self.random.randrange(5)
        position, before = worker.positions[task], self.committed.get(task, 0)
        assert position >= before, f"{task} commits {position} after {before}"
        self.committed[task] = position

    # --- what happens ---

    def check(self) -> None:
        owner: dict[Named, str] = {}
        for name in sorted(self.members):
            for running in self.workers[name].running:
                assert running not in owner, f"{running} runs on {owner[running]} and {name}"
                owner[running] = name

    def write(self, records: list[ConfigRecord]) -> None:
        if self.leader() is not None:
            self.configs += records

    def something(self) -> None:
        """Have one thing happen to the cluster, or to what it is to run."""
        name = f"w{self.random.randrange(WORKERS)}"
        connector = f"c{self.random.randrange(CONNECTORS):02}"
        match self.random.randrange(9):
            case 0 if name in self.members and len(self.members) > 1:
                self.kill(name)
            case 1 if name in self.members and len(self.members) > 1:
                self.freeze(name)
            case 2 | 3 if name not in self.workers:
                self.start(name)
            case 2 | 3 if self.workers[name].is_frozen:
                self.thaw(name)
            case 4:
                told = {"name": connector, "tasks": str(self.random.randint(1, TASKS))}
                self.write(list(connector_records(connector, told)))
            case 5 if self.random.random() < 0.3:
                self.write(list(removal_records(connector)))
            case 6:
                states = [TargetState.PAUSED, TargetState.STARTED, TargetState.STOPPED]
                self.write([target_state_record(connector, self.random.choice(states))])
            case _:
                self.now_ms += self.random.randrange(1_500)

    def play(self, rounds: int, *, may_fail: bool = True) -> None:
        """Have workers read, run and answer, in any order."""
        for _ in range(rounds):
            awake = [each for each in self.workers.values() if not each.is_frozen]
            worker = self.random.choice(awake)
            if self.random.random() < 0.5:
                self.read(worker)
                self.step(worker)
            if worker.running:
                running = self.random.choice(sorted(worker.running, key=str))
                self.answer(worker, running, may_fail=may_fail)
            self.maybe_rebalance()
            self.check()

    def settle(self) -> None:
        """Let time pass until nothing changes."""
        for _ in range(60):
            before = self.generation, len(self.configs), len(self.statuses)
            self.now_ms += 61_000
            for worker in self.workers.values():
                self.read(worker)
                self.step(worker)
                for running in sorted(worker.running, key=str):
                    if running in worker.running and worker.running[running] != "up":
                        self.answer(worker, running, may_fail=False)
                self.maybe_rebalance()
                self.check()
            doing = {what for worker in self.workers.values() for what in worker.running.values()}
            after = self.generation, len(self.configs), len(self.statuses)
            if doing <= {"up"} and before == after:
                return
        raise AssertionError("it never comes to rest")

    def heal(self) -> None:
        for name in [f"w{number}" for number in range(WORKERS)]:
            if name not in self.workers:
                self.start(name)
            elif self.workers[name].is_frozen:
                self.thaw(name)
        self.settle()  # Without a leader nothing can be written.
        for number in range(CONNECTORS):
            connector = f"c{number:02}"
            self.write(list(connector_records(connector, {"name": connector})))
            self.write([target_state_record(connector, TargetState.STARTED)])


def check_rest(simulation: Simulation) -> None:
    """Everything runs, once, in equal parts, and is shown where it runs."""
    up = {
        name: {each for each, doing in worker.running.items() if doing == "up"}
        for name, worker in simulation.workers.items()
    }
    assert sum(map(len, up.values())) == CONNECTORS * (1 + TASKS), {
        n: len(u) for n, u in up.items()
    }
    tasks = [sum(isinstance(each, TaskId) for each in names) for names in up.values()]
    assert max(tasks) - min(tasks) <= 1, tasks
    shown = next(iter(simulation.workers.values())).herder.statuses
    for name, names in up.items():
        for each in names:
            status: Any = shown.of(each)
            assert (status.state, status.worker_id) == (State.RUNNING, name), (each, status)


def simulate(seed: int, *, rejoins_early: bool = False) -> None:
    """Play a whole history; raises AssertionError for what must not be."""
    simulation = Simulation(seed, rejoins_early=rejoins_early)
    for number in range(WORKERS):
        simulation.start(f"w{number}")
    simulation.maybe_rebalance()
    for number in range(CONNECTORS):
        simulation.write(list(connector_records(f"c{number:02}", {"name": f"c{number:02}"})))
    simulation.play(100)
    for _ in range(_EVENTS):
        simulation.something()
        simulation.play(simulation.random.randrange(8))
    simulation.heal()
    simulation.settle()
    check_rest(simulation)
    lost = simulation.workers["w1"].share.tasks
    for worker in simulation.workers.values():
        worker.started.clear()
    simulation.kill("w1")
    simulation.settle()
    moved = set().union(*(worker.started for worker in simulation.workers.values()))
    assert moved == lost, (sorted(moved ^ lost), "a lost worker moves what it ran and no more")
    check_rest(simulation)
