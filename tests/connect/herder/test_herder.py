"""What runs where: the table of `connect.herder`, cell by cell, and its invariants."""

import json
from random import Random
from typing import Any

import pytest

from connect.herder import effects, requests
from connect.herder.config_records import (
    RestartRequest,
    connector_records,
    removal_records,
    target_state_record,
    task_records,
)
from connect.herder.herder import Assignment, Herder, Phase
from connect.herder.names import ElsewhereError, RefusalError, State, TargetState, TaskId
from connect.herder.status import Status, TopicStatus, status_record, topic_record

C = "c"
T = TaskId(C, 0)
CONFIG = {"name": C, "connector.class": "X"}


class Worker:
    """Plays the shell: reads what is written at once, and answers effects when told to."""

    def __init__(self, **traits: Any) -> None:
        self.herder = Herder("here:1", **traits)
        self.now_ms = 0
        self.asked: list[effects.Effect] = []

    def step(self) -> list[effects.Effect]:
        """Take steps until nothing comes; give what the shell is to do."""
        done: list[effects.Effect] = []
        while found := self.herder.step(self.now_ms):
            for effect in found:
                if isinstance(effect, effects.WriteConfig):
                    self.read(*effect.records)
                elif isinstance(effect, effects.WriteStatus):
                    self.herder.replay_status(*effect.record)
                else:
                    done.append(effect)
        return done

    def read(self, *records: tuple[str, bytes | None]) -> None:
        for key, value in records:
            self.herder.replay_config(key, value)

    def configure(self, config: dict[str, Any] = CONFIG, **more: Any) -> list[effects.Effect]:
        self.read(*connector_records(C, config, **more))
        return self.step()

    def run(self, tasks: int = 1) -> None:
        """Bring a connector and its tasks up."""
        self.configure()
        self.herder.connector_started(C, "1", self.now_ms)
        self.step()
        self.herder.task_configs_made(C, [{"n": str(n)} for n in range(tasks)])
        self.step()
        for n in range(tasks):
            self.herder.task_started(TaskId(C, n), "1", self.now_ms)
        self.step()

    def shown(self) -> dict[str, str]:
        statuses = self.herder.statuses
        return {str(name): (statuses.of(name) or "").state.value for name in statuses.everything()}


def test_a_connector_starts_then_its_tasks() -> None:
    worker = Worker()
    assert worker.configure() == [effects.StartConnector(C, CONFIG)]
    worker.herder.connector_started(C, "1", 0)
    assert worker.step() == [effects.MakeTaskConfigs(C, CONFIG)]
    worker.herder.task_configs_made(C, [{"a": "b"}])
    assert worker.step() == [effects.StartTask(T, CONFIG, {"a": "b"}, False)]
    worker.herder.task_started(T, "1", 0)
    assert worker.step() == []
    assert worker.shown() == {"c": "RUNNING", "c-0": "RUNNING"}


def test_a_new_configuration_stops_the_connector_before_it_starts_again() -> None:
    worker = Worker()
    worker.run()
    new = {**CONFIG, "a": "b"}
    assert worker.configure(new) == [effects.StopConnector(C)]
    worker.herder.connector_stopped(C)
    assert worker.step() == [effects.StartConnector(C, new)]


def test_tasks_go_on_when_their_configuration_and_the_connectors_are_the_same() -> None:
    worker = Worker()
    worker.run()
    worker.configure()
    worker.herder.connector_stopped(C)
    worker.step()
    worker.herder.connector_started(C, "1", 0)
    worker.step()
    worker.herder.task_configs_made(C, [{"n": "0"}])
    assert worker.step() == []


def test_a_changed_connector_restarts_tasks_that_look_the_same() -> None:
    worker = Worker()
    worker.run()
    worker.configure({**CONFIG, "transforms": "x"})
    worker.herder.connector_stopped(C)
    worker.step()
    worker.herder.connector_started(C, "1", 0)
    worker.step()
    worker.herder.task_configs_made(C, [{"n": "0"}])
    assert worker.step() == [effects.StopTask(T)]
    worker.herder.task_stopped(T)
    assert [type(each) for each in worker.step()] == [effects.StartTask]


@pytest.mark.parametrize("state", [State.UNASSIGNED, State.FAILED])
def test_what_a_worker_says_late_of_what_runs_here_is_contradicted(state: State) -> None:
    worker = Worker()
    worker.run(tasks=2)
    worker.read(target_state_record(C, TargetState.PAUSED))
    worker.step()
    worker.herder.task_paused(T, is_paused=True)
    worker.step()
    for name in (T, TaskId(C, 1)):
        late = Status(state, "there:1", generation=9, trace="x")
        worker.herder.replay_status(*status_record(name, late))
    assert worker.herder.has_effects
    worker.step()
    assert worker.shown() == {"c": "RUNNING", "c-0": "PAUSED", "c-1": "RUNNING"}


def test_what_another_worker_says_of_what_runs_there_stays() -> None:
    worker = Worker()
    worker.run()
    taken_over = Status(State.RUNNING, "there:1", generation=9)
    worker.herder.replay_status(*status_record(T, taken_over))
    assert not worker.herder.has_effects
    worker.herder.assign(Assignment(connectors=frozenset({C})))
    worker.step()
    worker.herder.task_stopped(T)
    worker.step()
    worker.herder.replay_status(*status_record(T, Status(State.FAILED, "there:1", 9, "x")))
    assert not worker.herder.has_effects


def test_pausing_keeps_tasks_and_stops_the_connector() -> None:
    worker = Worker()
    worker.run()
    worker.read(target_state_record(C, TargetState.PAUSED))
    assert worker.step() == [effects.StopConnector(C), effects.PauseTask(T, True)]
    worker.herder.connector_stopped(C)
    worker.herder.task_paused(T, is_paused=True)
    worker.step()
    assert worker.shown() == {"c": "PAUSED", "c-0": "PAUSED"}


def test_tasks_that_were_made_while_the_connector_was_being_stopped_are_taken_back() -> None:
    worker = Worker()
    worker.configure()
    worker.herder.connector_started(C, "1", 0)
    worker.step()
    late = task_records(C, [{"n": "0"}])
    worker.read(*requests.stop(worker.herder, C), *late)
    worker.step()
    worker.herder.connector_stopped(C)
    assert worker.step() == []
    assert worker.herder.config.task_configs(C) == []
    assert worker.shown() == {"c": "STOPPED"}


def test_stopping_drops_tasks_and_their_status() -> None:
    worker = Worker()
    worker.run()
    worker.read(*requests.stop(worker.herder, C))
    assert worker.step() == [effects.StopConnector(C), effects.StopTask(T)]
    worker.herder.connector_stopped(C)
    worker.herder.task_stopped(T)
    worker.step()
    assert worker.shown() == {"c": "STOPPED"}


def test_deleting_stops_everything_and_then_forgets_it() -> None:
    worker = Worker()
    worker.run(tasks=2)
    worker.read(*removal_records(C))
    assert len(worker.step()) == 3
    assert worker.shown() != {}
    worker.herder.connector_stopped(C)
    worker.herder.task_stopped(T)
    worker.herder.task_stopped(TaskId(C, 1))
    worker.step()
    assert worker.shown() == {}


def test_what_was_deleted_is_gone_at_once_though_its_tasks_still_end() -> None:
    worker = Worker()
    worker.run()
    assert requests.status_body(worker.herder, C, "source")["connector"]["state"] == "RUNNING"
    worker.read(*requests.delete(worker.herder, C))
    worker.step()
    assert worker.shown() != {}
    with pytest.raises(RefusalError, match=f"No status found for connector {C}"):
        requests.status_body(worker.herder, C, "source")


def test_a_connector_created_stopped_never_runs() -> None:
    worker = Worker()
    assert worker.configure(target_state=TargetState.STOPPED) == []
    assert worker.shown() == {"c": "STOPPED"}


def test_a_failed_task_starts_again_after_longer_and_longer() -> None:
    worker = Worker()
    worker.run()
    for delay_ms in (1_000, 2_000, 4_000):
        worker.herder.task_failed(T, "why", worker.now_ms)
        assert worker.step() == []
        assert worker.shown()["c-0"] == "FAILED"
        assert worker.herder.next_deadline_ms() == worker.now_ms + delay_ms
        worker.now_ms += delay_ms
        assert [type(each) for each in worker.step()] == [effects.StartTask]
        worker.herder.task_started(T, "1", worker.now_ms)
        worker.step()
    assert worker.herder.statuses.tasks[T].body()["restarts"] == 3


def test_a_task_that_ran_long_enough_begins_anew() -> None:
    worker = Worker()
    worker.run()
    worker.herder.task_failed(T, "why", 0)
    worker.now_ms = 1_000
    worker.step()
    worker.herder.task_started(T, "1", 1_000)
    worker.now_ms = 100_000
    worker.herder.task_failed(T, "why", worker.now_ms)
    assert worker.herder.next_deadline_ms() == worker.now_ms + 1_000


def test_without_a_delay_a_failed_task_stays_failed() -> None:
    worker = Worker()
    worker.run()
    worker.read(*connector_records(C, {**CONFIG, "errors.task.restart.max.delay.ms": "0"}))
    worker.herder.task_failed(T, "why", 0)
    assert worker.herder.next_deadline_ms() is None


def test_restarting_what_failed_leaves_what_runs() -> None:
    worker = Worker()
    worker.run(tasks=2)
    worker.herder.task_failed(TaskId(C, 1), "why", 0)
    worker.step()
    request = RestartRequest(C, include_tasks=True, only_failed=True)
    records, body = requests.restart(worker.herder, request, "source")
    assert [task["state"] for task in body["tasks"]] == ["RUNNING", "RESTARTING"]
    worker.read(*records)
    assert worker.step() == [effects.StartTask(TaskId(C, 1), CONFIG, {"n": "1"}, False)]


def test_restarts_read_while_catching_up_are_old_news() -> None:
    worker = Worker()
    worker.run()
    worker.herder.is_caught_up = False
    worker.read(*requests.restart(worker.herder, RestartRequest(C, True), "source")[0])
    assert worker.step() == []


def test_what_stops_is_stopped_once_and_late_answers_change_nothing() -> None:
    worker = Worker()
    worker.run()
    worker.read(*requests.stop(worker.herder, C))
    worker.step()
    worker.herder.task_failed(T, "late", 0)
    worker.herder.task_started(T, "1", 0)
    assert worker.step() == []
    assert worker.herder.tasks[T].phase is Phase.STOPPING


def test_an_incomplete_commit_makes_the_connector_make_its_tasks_anew() -> None:
    worker = Worker()
    worker.read(*connector_records(C, CONFIG), *task_records(C, [{"n": "0"}, {"n": "1"}])[1:])
    assert worker.herder.config.inconsistent == {C}
    worker.step()
    worker.herder.connector_started(C, "1", 0)
    worker.step()
    worker.herder.task_configs_made(C, [{"n": "0"}, {"n": "1"}])
    assert len(worker.step()) == 2
    assert worker.herder.config.inconsistent == set()


def test_task_configurations_count_from_their_commit_on() -> None:
    worker = Worker()
    worker.run()
    *tasks, commit = task_records(C, [{"n": "new"}])
    worker.read(*tasks)
    assert worker.step() == []
    worker.read(commit)
    assert worker.step() == [effects.StopTask(T)]


def test_secrets_go_back_to_variables_in_what_is_written() -> None:
    worker = Worker()
    config = {**CONFIG, "password": "${file:/s:p}"}
    worker.configure(config)
    worker.herder.connector_started(C, "1", 0)
    worker.step()
    worker.herder.task_configs_made(C, [{"password": "hunter2", "other": "x"}])
    worker.step()
    assert worker.herder.config.task_config(T) == {"password": "${file:/s:p}", "other": "x"}


def test_a_worker_of_a_group_runs_only_what_it_was_given() -> None:
    worker = Worker(assignment=Assignment())
    assert worker.configure() == []
    worker.herder.assign(Assignment(frozenset({C}), frozenset(), 1, True, "http://me"))
    assert worker.step() == [effects.StartConnector(C, CONFIG)]
    worker.herder.connector_started(C, "1", 0)
    worker.step()
    worker.herder.assign(Assignment(frozenset(), frozenset(), 2, False, "http://you"))
    assert worker.step() == [effects.StopConnector(C)]
    assert worker.herder.is_running_any([C])
    worker.herder.connector_stopped(C)
    worker.step()
    assert not worker.herder.is_running_any([C])
    assert worker.shown() == {"c": "UNASSIGNED"}


def test_only_the_leader_writes_configurations() -> None:
    worker = Worker(assignment=Assignment(leader_url="http://leader"))
    with pytest.raises(ElsewhereError) as elsewhere:
        requests.put_config(worker.herder, C, CONFIG)
    assert elsewhere.value.url == "http://leader"


def test_a_follower_sends_the_tasks_it_made_to_the_leader() -> None:
    worker = Worker(assignment=Assignment(frozenset({C}), leader_url="http://leader"))
    worker.configure()
    worker.herder.connector_started(C, "1", 0)
    worker.step()
    worker.herder.task_configs_made(C, [{"n": "0"}])
    assert worker.step() == [effects.SendTaskConfigs("http://leader", C, ({"n": "0"},))]


def test_what_nobody_can_read_in_the_log_is_skipped() -> None:
    worker = Worker()
    worker.run()
    for key in ("connector-c", "task-c-0", "commit-c", "target-state-c", "session-key", "x", ""):
        for value in (b"", b"{", b"[]", b"7", b'{"properties":1}', b'{"state":"?"}', b"\xff"):
            worker.read((key, value))
    assert worker.shown() == {"c": "RUNNING", "c-0": "RUNNING"}
    assert worker.step() == []


def test_offsets_change_only_while_a_connector_is_stopped() -> None:
    worker = Worker()
    worker.run()
    with pytest.raises(RefusalError) as refusal:
        requests.check_offsets_may_change(worker.herder, C)
    assert refusal.value.status == 400
    worker.read(*requests.stop(worker.herder, C))
    requests.check_offsets_may_change(worker.herder, C)


@pytest.mark.parametrize("seed", range(200))
def test_nothing_runs_twice_and_everything_comes_to_what_is_wanted(seed: int) -> None:
    """Requests, crashes and answers in any order; at the end all is as the log says."""
    random, worker = Random(seed), Worker()
    running: dict[Any, str] = {}
    for _ in range(120):
        _do_something(random, worker)
        _take(worker, running)
        if running and random.random() < 0.7:
            _answer(random, worker, running)
    for _ in range(200):
        worker.now_ms += 60_000
        _take(worker, running)
        if running:
            _answer(random, worker, running, may_fail=False)
    config = worker.herder.config
    state = config.target_state(C)
    is_there = C in config.connector_configs
    up = {name for name, doing in running.items() if doing == "up"}
    assert (C in up) == (is_there and state is TargetState.STARTED)
    is_stopped = state is TargetState.STOPPED
    assert up - {C} == (set() if is_stopped else set(config.task_ids(C)))


def _do_something(random: Random, worker: Worker) -> None:
    match random.randrange(9):
        case 0 | 1:
            worker.read(*connector_records(C, {**CONFIG, "n": str(random.randrange(3))}))
        case 2:
            worker.read(*removal_records(C))
        case 3 if worker.herder.is_configured(C):
            worker.read(*requests.stop(worker.herder, C))
        case 4:
            state = random.choice([TargetState.PAUSED, TargetState.STARTED])
            worker.read(target_state_record(C, state))
        case 5:
            request = RestartRequest(C, random.random() < 0.5, random.random() < 0.5)
            worker.herder.replay_config(
                "restart-connector-c",
                json.dumps(
                    {
                        "include-tasks": request.include_tasks,
                        "only-failed": request.only_failed,
                    }
                ).encode(),
            )
        case 6:
            worker.now_ms += random.randrange(3_000)
        case _:
            worker.herder.reconfigure(C)


def _take(worker: Worker, running: dict[Any, str]) -> None:
    for effect in worker.step():
        match effect:
            case effects.StartConnector(name=name) | effects.StartTask(task=name):
                assert name not in running, f"{name} runs twice"
                running[name] = "starting"
            case effects.StopConnector(name=name) | effects.StopTask(task=name):
                assert name in running, f"{name} is stopped and does not run"
                running[name] = "stopping"
            case effects.MakeTaskConfigs(name=name, config=config):
                count = 1 + int(config.get("n") or 0)
                tasks = [{"n": str(n)} for n in range(count)]
                worker.herder.task_configs_made(name, tasks)
            case _:
                pass


def _answer(
    random: Random, worker: Worker, running: dict[Any, str], *, may_fail: bool = True
) -> None:
    name = random.choice(sorted(running, key=str))
    herder, is_task = worker.herder, isinstance(name, TaskId)
    if running[name] == "stopping":
        del running[name]
        herder.task_stopped(name) if is_task else herder.connector_stopped(name)
    elif may_fail and random.random() < 0.2:
        del running[name]
        failed = herder.task_failed if is_task else herder.connector_failed
        failed(name, "why", worker.now_ms)
    elif running[name] == "starting":
        running[name] = "up"
        started = herder.task_started if is_task else herder.connector_started
        started(name, "1", worker.now_ms)


def test_states_are_shown_as_kafka_connect_shows_them() -> None:
    assert {state.value for state in State} >= {state.value for state in TargetState} - {"STARTED"}


def test_what_is_written_and_not_read_yet_is_not_written_again() -> None:
    """The log of a cluster answers later; a step that always finds something never ends."""
    worker = Worker()
    worker.run()
    worker.herder.replay_status(*topic_record(TopicStatus("t", C, 0, 1)))
    worker.read(*removal_records(C))
    for effect in worker.herder.step(0):
        if isinstance(effect, effects.StopConnector):
            worker.herder.connector_stopped(C)
        elif isinstance(effect, effects.StopTask):
            worker.herder.task_stopped(T)
    rounds = 0
    while worker.herder.step(0):
        rounds += 1
        assert rounds < 5
