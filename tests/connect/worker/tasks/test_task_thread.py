"""A task's thread: what is left of it when it has ended."""

import gc
import logging
import weakref
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connect.definitions.concealing import Concealing
from connect.herder.names import TaskId
from connect.worker.tasks.departures import Member
from connect.worker.tasks.factory import source_work
from connect.worker.tasks.sink import SinkWork
from connect.worker.tasks.thread import Control, TaskCounts, TaskThread
from millstream.connect.connectors import SourceTask
from millstream.connect.data.records import SourceRecord


class Work:
    """Work that is done at once, and refers to its thread as a task's does."""

    def __init__(self, thread: TaskThread) -> None:
        self.thread = thread
        self.counts = TaskCounts("source")

    def begin(self) -> str:
        return "1"

    def go_on(self) -> None:
        pass

    def end(self) -> None:
        pass

    def interrupt(self) -> None:
        pass


class Listener:
    """Hears what becomes of it, and whether its figures were still there then."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def task_began(self, thread: TaskThread, version: str) -> None:
        self.told.append(version)

    def task_noted(self, thread: TaskThread, note: str | None) -> None: ...

    def task_held(self, thread: TaskThread, is_paused: bool) -> None:
        raise AssertionError

    def task_ended(self, thread: TaskThread, trace: str | None) -> None:
        self.told.append((thread.work is not None, trace))

    def topic_used(self, task: TaskId, topic: str) -> None:
        raise AssertionError

    def member_left(self, member: Member) -> None:
        raise AssertionError

    def require_current(self, thread: TaskThread) -> None:
        raise AssertionError


def test_what_an_ended_task_held_is_gone_before_the_collector_comes() -> None:
    made: list[weakref.ref[Work]] = []

    def make(thread: TaskThread) -> Work:
        work = Work(thread)
        made.append(weakref.ref(work))
        return work

    listener = Listener()
    thread = TaskThread(TaskId("copier", 0), make, Control(), listener)
    gc.disable()
    try:
        thread.start()
        thread.join()
        assert listener.told == ["1", (True, None)]
        assert made[0]() is None
    finally:
        gc.enable()


class Source(SourceTask):
    """Polled by nobody here."""

    def start(self, config: Mapping[str, str]) -> None:
        raise AssertionError

    def poll(self) -> list[SourceRecord]:
        raise AssertionError

    def stop(self) -> None:
        raise AssertionError


class _HeldError(Exception):
    """Ends the work at the point that is looked at."""


def thread_that_began_paused(told: list[bool]) -> Any:
    """Return what a task sees of its thread; it ends when it tells whether it is held."""

    def held(is_paused: bool) -> None:
        told.append(is_paused)
        raise _HeldError

    task, control = TaskId("copier", 0), Control(is_paused=True)
    return SimpleNamespace(task=task, control=control, caller=None, held=held)


def test_a_source_that_began_paused_tells_that_it_goes_on_though_it_never_looked_before() -> None:
    """It is shown as paused from its beginning, and would be for ever."""
    told: list[bool] = []
    thread = thread_that_began_paused(told)
    converters = SimpleNamespace(key=None, value=None)
    parts: Any = SimpleNamespace(task=Source(), converters=converters)
    work = source_work(thread, parts, TaskCounts("source"), None)
    thread.control.pause(False)
    with pytest.raises(_HeldError):
        work._run()
    assert told == [False]


def test_a_sink_that_began_paused_tells_that_it_goes_on_though_it_never_looked_before() -> None:
    told: list[bool] = []
    thread = thread_that_began_paused(told)
    unused: Any = None
    work = SinkWork(
        thread,
        TaskCounts("sink"),
        task=unused,
        config={},
        subscription=unused,
        stages=[],
        converters=unused,
        steps=unused,
        report=cast("Any", SimpleNamespace(takes_single_records=False)),
        consumer={},
        dead_letter_clients=({}, {}),
        max_poll_records=1,
        flush_interval_ms=1,
    )
    consumer = SimpleNamespace(pause=lambda _: None, resume=lambda _: None)
    work._consumer = cast("Any", consumer)
    thread.control.pause(False)
    with pytest.raises(_HeldError):
        work._iterate()
    assert told == [False]


class _Failing(Work):
    """Fails with a variable's value in what it says: as it goes on, and at its end."""

    said = "it was told swordfish"

    def go_on(self) -> None:
        raise ValueError(self.said)

    end = go_on


@pytest.mark.parametrize("is_stopping", [False, True])
def test_the_log_of_a_task_that_is_stopped_shows_no_variable_either(
    caplog: pytest.LogCaptureFixture, is_stopping: bool
) -> None:
    def make(thread: TaskThread) -> Work:
        thread.concealing = Concealing({"swordfish": "${env:FISH}"})
        return _Failing(thread)

    control = Control()
    if is_stopping:
        control.stop()
    thread = TaskThread(TaskId("copier", 0), make, control, Listener())
    with caplog.at_level(logging.INFO):
        thread.run()
    assert caplog.text.count("it was told ${env:FISH}") == 2
    assert "swordfish" not in caplog.text
