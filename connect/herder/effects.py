"""The effects that the herder returns. The shell performs them in order."""

from dataclasses import dataclass
from typing import Any

from connect.herder.config_records import Config, ConfigRecord
from connect.herder.names import TaskId
from connect.herder.status import StatusRecord


@dataclass(frozen=True, slots=True)
class StartConnector:
    """Answered by `connector_started` or `connector_failed`."""

    name: str
    config: Config


@dataclass(frozen=True, slots=True)
class StopConnector:
    """Answered by `connector_stopped`, in any case and in bounded time."""

    name: str


@dataclass(frozen=True, slots=True)
class MakeTaskConfigs:
    """Ask a running connector for its tasks; answered by `task_configs_made`."""

    name: str
    config: Config


@dataclass(frozen=True, slots=True)
class StartTask:
    """Answered by `task_started` or `task_failed`."""

    task: TaskId
    connector_config: Config
    task_config: Config
    is_paused: bool
    is_exactly_once: bool = False
    """True if the task writes in transactions; then all earlier tasks are fenced (KIP-618)."""


@dataclass(frozen=True, slots=True)
class StopTask:
    """Answered by `task_stopped`, in any case and in bounded time."""

    task: TaskId


@dataclass(frozen=True, slots=True)
class PauseTask:
    """Pause or resume a task; answered by `task_paused`."""

    task: TaskId
    is_paused: bool


@dataclass(frozen=True, slots=True)
class WriteConfig:
    """Write records to the config topic."""

    records: tuple[ConfigRecord, ...]


@dataclass(frozen=True, slots=True)
class SendTaskConfigs:
    """Send the task configurations of a connector that runs here to the leader."""

    leader_url: str | None
    connector: str
    configs: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class FenceTasks:
    """As the leader, fence the producers of earlier tasks, then write the records of
    `requests.fenced`. Answered by `fencing_ended`.
    """

    connector: str
    config: Config
    producers: int
    """Fence the producers of the tasks 0 to `producers` - 1; 0: only write the record."""
    generation: int


@dataclass(frozen=True, slots=True)
class AskForFencing:
    """Ask the leader to fence a connector's earlier tasks. Answered by `fencing_ended`."""

    leader_url: str | None
    connector: str
    generation: int


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Write a record to the status topic."""

    record: StatusRecord


@dataclass(frozen=True, slots=True)
class SetLogger:
    """Set the level of a logger of this worker."""

    logger: str
    level: str


Effect = (
    StartConnector
    | StopConnector
    | MakeTaskConfigs
    | StartTask
    | StopTask
    | PauseTask
    | WriteConfig
    | SendTaskConfigs
    | FenceTasks
    | AskForFencing
    | WriteStatus
    | SetLogger
)
