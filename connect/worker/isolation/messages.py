"""The messages between a worker and the process of one of its tasks. They are pickled.

No other process holds an end of the pair of sockets, so no foreign data is unpickled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connect.herder.effects import StartTask
from connect.worker.tasks.departures import Member
from connect.worker.tasks.thread import TaskCounts
from millstream.connect.connectors import TaskMetric

Levels = Mapping[str, int]
"""The level, as Python's number, of each logger that has its own level."""

# --- from the worker ---


@dataclass(frozen=True, slots=True)
class Begin:
    """The first message, sent once."""

    task: StartTask
    settings: Mapping[str, str | None]
    """The worker's settings, as they were written."""
    is_distributed: bool
    silence_ms: int | None
    """The process ends when it hears nothing from its worker for this long; None: never."""
    levels: Levels


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause the task, or go on."""

    is_paused: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """End the task and release its resources."""


@dataclass(frozen=True, slots=True)
class Alive:
    """The worker is alive, and the task is to go on."""

    levels: Levels


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to the one open `Ask`."""

    value: Any
    error: str | None


FromWorker = Begin | Pause | Stop | Alive | Answer

# --- from the process ---


@dataclass(frozen=True, slots=True)
class Began:
    """The task has begun; `version` is that of its class."""

    version: str


@dataclass(frozen=True, slots=True)
class Held:
    """The task is paused, or goes on."""

    is_paused: bool


@dataclass(frozen=True, slots=True)
class Noted:
    """The task's note changed."""

    note: str | None


@dataclass(frozen=True, slots=True)
class Used:
    """The task has used a topic."""

    topic: str


@dataclass(frozen=True, slots=True)
class Left:
    """The task's consumer could not leave its group."""

    member: Member


@dataclass(frozen=True, slots=True)
class Counted:
    """The task's present metrics; `own` are those of the task's own code."""

    counts: TaskCounts
    own: tuple[TaskMetric, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """Make the worker call one of `ASKED`. The process sends no other `Ask` before the answer."""

    what: str
    arguments: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """The last message; the task failed if there is a trace."""

    trace: str | None


FromProcess = Began | Held | Noted | Used | Left | Counted | Ask | Ended
