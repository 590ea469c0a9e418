"""What a task tells of itself is asked for at any time, and given once it has begun."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from connect.definitions.concealing import NOTHING
from connect.herder.names import TaskId
from connect.worker.tasks.factory import source_work
from connect.worker.tasks.own_metrics import OwnMetrics
from connect.worker.tasks.thread import Control, TaskCounts
from millstream.connect import SourceTask
from millstream.connect.connectors import Settings, TaskMetric


class CountingTask(SourceTask):
    def start(self, settings: Settings) -> None:
        super().start(settings)
        self.figure = 5

    def metrics(self) -> Iterable[TaskMetric]:
        return [TaskMetric("figure", {}, self.figure)]


def test_who_asks_before_the_task_has_begun_is_told_nothing() -> None:
    counts = TaskCounts("source")
    converters = SimpleNamespace(key=None, value=None)
    parts: Any = SimpleNamespace(
        task=CountingTask(),
        config={},
        converters=converters,
        producer={"bootstrap.servers": "127.0.0.1:1", "log_level": 0},
        offsets=None,
        own_offsets=None,
        flush_interval_ms=1_000,
    )
    thread: Any = SimpleNamespace(
        control=Control(),
        caller=lambda call, *arguments: call(*arguments),
        concealing=NOTHING,
        task=SimpleNamespace(connector="counts"),
    )
    work = source_work(thread, parts, counts, None)
    assert list(counts.own_metrics()) == []
    work.begin()
    assert list(counts.own_metrics()) == [TaskMetric("figure", {}, 5)]


@pytest.mark.parametrize(
    "told",
    [
        [TaskMetric("no name", {}, 1)],
        [TaskMetric("figure", {"no label": "x"}, 1)],
        [TaskMetric("figure", {}, cast("float", "much"))],
        [("figure",)],
        None,
    ],
)
def test_what_is_no_figure_is_left_out_and_said_once(
    told: Any, caplog: pytest.LogCaptureFixture
) -> None:
    asked = OwnMetrics(TaskId("counts", 0), lambda: told, NOTHING)
    assert asked() == asked() == ()
    (message,) = caplog.messages
    assert message.startswith("task's metrics are left out task=counts-0\nTraceback")


def test_labels_of_other_types_are_told_as_text() -> None:
    asked = OwnMetrics(
        TaskId("counts", 0), lambda: [TaskMetric("f", cast("Any", {"p": 1}), 2)], NOTHING
    )
    assert asked() == (TaskMetric("f", {"p": "1"}, 2.0),)
