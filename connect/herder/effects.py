"""What the herder asks of its shell. Each is done in the order in which it is given."""

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
    """Whether it writes in transactions; then everything before it is fenced by now (KIP-618)."""


@dataclass(frozen=True, slots=True)
class StopTask:
    """Answered by `task_stopped`, in any case and in bounded time."""

    task: TaskId


@dataclass(frozen=True, slots=True)
class PauseTask:
    """Hold a task, or let it go on; answered by `task_paused`."""

    task: TaskId
    is_paused: bool


@dataclass(frozen=True, slots=True)
class WriteConfig:
    records: tuple[ConfigRecord, ...]


@dataclass(frozen=True, slots=True)
class SendTaskConfigs:
    """Have the leader write the tasks of a connector that runs here."""

    leader_url: str | None
    connector: str
    configs: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class FenceTasks:
    """As the leader, shut out the producers of earlier tasks, then write what `requests.fenced`
    gives. Answered by `fencing_ended`.
    """

    connector: str
    config: Config
    producers: int
    """Those of the tasks 0 to this number may still write; with 0 there is only the record."""
    generation: int


@dataclass(frozen=True, slots=True)
class AskForFencing:
    """Have the leader fence a connector's earlier tasks. Answered by `fencing_ended`."""

    leader_url: str | None
    connector: str
    generation: int


@dataclass(frozen=True, slots=True)
class WriteStatus:
    record: StatusRecord


@dataclass(frozen=True, slots=True)
class SetLogger:
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
