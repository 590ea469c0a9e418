"""The types that the herder's inputs and outputs share: task ids, states, refusals."""

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
        """Parse `connector-number`; None if the text has another form."""
        connector, dash, number = text.rpartition("-")
        is_number = number.isdecimal() and number.isascii() and len(number) <= _DIGITS
        return cls(connector, int(number)) if dash and is_number else None


class TargetState(Enum):
    """The state that a user wants of a connector (KIP-875 added STOPPED)."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class State(Enum):
    """The shown state of a connector or a task."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"
    DESTROYED = "DESTROYED"


class RefusalError(Exception):
    """A request is answered with an error; `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ElsewhereError(Exception):
    """Another worker has to answer the request."""

    def __init__(self, message: str, url: str | None) -> None:
        super().__init__(message)
        self.url = url
        """The other worker's URL; None when this worker does not know it."""


def bad_request(message: str) -> RefusalError:
    return RefusalError(400, message)


def not_found(message: str) -> RefusalError:
    return RefusalError(404, message)


def conflict(message: str) -> RefusalError:
    return RefusalError(409, message)
