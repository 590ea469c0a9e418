"""What a worker and the process of one of its tasks tell each other, each pickled as it is.

Only the two of them hold the ends of their pair of sockets, so that nothing foreign is unpickled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect.herder.effects import StartTask
from connect.worker.task_thread import TaskCounts
from millrace.connect.connectors import TaskMetric

Levels = Mapping[str, int]
"""Python's level of each logger that has one of its own."""

# --- from the worker ---


@dataclass(frozen=True, slots=True)
class Begin:
    """Comes first, once."""

    task: StartTask
    settings: Mapping[str, str | None]
    """The worker's, as they were written."""
    is_distributed: bool
    silence_ms: int | None
    """After so much time without a word of its worker the process ends; None: never."""
    levels: Levels


@dataclass(frozen=True, slots=True)
class Pause:
    is_paused: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """End the task, and give back what it has."""


@dataclass(frozen=True, slots=True)
class Alive:
    """The worker lives, and wants the task to."""

    levels: Levels


@dataclass(frozen=True, slots=True)
class Answer:
    """Of the one `Ask` that is open."""

    value: Any
    error: str | None


FromWorker = Begin | Pause | Stop | Alive | Answer

# --- from the process ---


@dataclass(frozen=True, slots=True)
class Began:
    version: str


@dataclass(frozen=True, slots=True)
class Held:
    is_paused: bool


@dataclass(frozen=True, slots=True)
class Noted:
    """What the task says of itself."""

    note: str | None


@dataclass(frozen=True, slots=True)
class Used:
    topic: str


@dataclass(frozen=True, slots=True)
class Counted:
    """The figures at this moment; `own` are those of the task's own code."""

    counts: TaskCounts
    own: tuple[TaskMetric, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """Have the worker call one of `ASKED`. Nothing else is asked until it is answered."""

    what: str
    arguments: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """Comes last; with a trace it failed."""

    trace: str | None


FromProcess = Began | Held | Noted | Used | Counted | Ask | Ended
