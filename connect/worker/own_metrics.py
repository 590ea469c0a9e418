"""What a task's own code tells of itself: asked for at any time, and no more trusted than its rest.

What it raises, or tells that is no figure, is logged, and the task is without figures until it
tells some.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from connect.herder.names import TaskId
from millrace.connect.connectors import TaskMetric

log = logging.getLogger(__name__)

_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


class OwnMetrics:
    """Asks a task, which may be while it works: from another thread."""

    def __init__(self, task: TaskId, metrics: Callable[[], Iterable[TaskMetric]]) -> None:
        self._task = task
        self._metrics = metrics
        self._error = ""

    def __call__(self) -> tuple[TaskMetric, ...]:
        try:
            told = tuple(_checked(*each) for each in self._metrics())
        except Exception as error:
            # Somebody asks every few seconds: the same is said once.
            if repr(error) != self._error:
                self._error = repr(error)
                log.exception("task's metrics are left out task=%s", self._task)
            return ()
        self._error = ""
        return told


def _checked(name: str, labels: Mapping[str, str], value: float) -> TaskMetric:
    """Raises ValueError or TypeError for what Prometheus could not read."""
    for each, shape in ((name, _NAME), *((label, _LABEL) for label in labels)):
        if not shape.fullmatch(each):
            raise ValueError(f"Not a name in Prometheus' format: {each!r}")
    return TaskMetric(name, {label: str(labels[label]) for label in labels}, float(value))
