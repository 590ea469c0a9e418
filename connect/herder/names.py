"""The words the herder is told in: tasks, states, refusals."""

from enum import Enum
from typing import Final, NamedTuple, Self

_DIGITS: Final = 9


class TaskId(NamedTuple):
    """A task by its connector and number."""

    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `connector-number`; None for what is none."""
        connector, dash, number = text.rpartition("-")
        is_number = number.isdecimal() and number.isascii() and len(number) <= _DIGITS
        return cls(connector, int(number)) if dash and is_number else None


class TargetState(Enum):
    """What a user wants of a connector (KIP-875 added STOPPED)."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class State(Enum):
    """What a connector or a task shows."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"
    DESTROYED = "DESTROYED"


class RefusalError(Exception):
    """A request that is answered with an error; the status is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ElsewhereError(Exception):
    """A request that another worker has to answer."""

    def __init__(self, message: str, url: str | None) -> None:
        super().__init__(message)
        self.url = url
        """Where that worker is reached; None when this one does not know."""


def bad_request(message: str) -> RefusalError:
    return RefusalError(400, message)


def not_found(message: str) -> RefusalError:
    return RefusalError(404, message)


def conflict(message: str) -> RefusalError:
    return RefusalError(409, message)
