"""Collects the metrics that a task's own code reports. The code is not trusted.

When the task's method raises, or returns something that is not a metric, the worker logs it and
shows no own metrics of the task until the method returns valid ones.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from connect.definitions.concealing import Concealing
from connect.herder.names import TaskId
from millstream.connect.connectors import TaskMetric

log = logging.getLogger(__name__)

_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


class OwnMetrics:
    """Asks a task for its metrics, from another thread and possibly while the task works."""

    def __init__(
        self, task: TaskId, metrics: Callable[[], Iterable[TaskMetric]], concealing: Concealing
    ) -> None:
        self._task = task
        self._metrics = metrics
        self._concealing = concealing
        self._error = ""

    def __call__(self) -> tuple[TaskMetric, ...]:
        try:
            told = tuple(_checked(*each) for each in self._metrics())
        except Exception as error:  # noqa: BLE001
            # Prometheus scrapes every few seconds: log an unchanged problem once.
            if repr(error) != self._error:
                self._error = repr(error)
                trace = self._concealing.trace(error)
                log.error("task's metrics are left out task=%s\n%s", self._task, trace)
            return ()
        self._error = ""
        return told


def _checked(name: str, labels: Mapping[str, str], value: float) -> TaskMetric:
    """Raises ValueError or TypeError for a metric that Prometheus could not read."""
    for each, shape in ((name, _NAME), *((label, _LABEL) for label in labels)):
        if not shape.fullmatch(each):
            raise ValueError(f"Not a name in Prometheus' format: {each!r}")
    return TaskMetric(name, {label: str(labels[label]) for label in labels}, float(value))
