"""A task's thread: what is left of it when it has ended."""

import gc
import weakref
from typing import Any

from connect.herder.names import TaskId
from connect.worker.task_thread import Control, TaskCounts, TaskThread


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

    def task_held(self, thread: TaskThread, is_paused: bool) -> None:
        raise AssertionError

    def task_ended(self, thread: TaskThread, trace: str | None) -> None:
        self.told.append((thread.work is not None, trace))

    def topic_used(self, task: TaskId, topic: str) -> None:
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
