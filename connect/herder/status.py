"""The status topic: the states of connectors and tasks, and the topics that they use.

Keys are `status-connector-<c>`, `status-task-<c>-<n>` and `status-topic-<t>:connector-<c>`. Values
are JSON without a schema; null removes a status. (Source of the format: KafkaStatusBackingStore.)
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from connect.herder.config_records import json_bytes
from connect.herder.names import State, TaskId

_CONNECTOR: Final = "status-connector-"
_TASK: Final = "status-task-"
_TOPIC: Final = "status-topic-"
_TOPIC_SEPARATOR: Final = ":connector-"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Status:
    """A state, with the worker that wrote it and the group's generation at that time."""

    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None
    restarts: int = 0
    """The number of automatic restarts in a row."""
    note: str | None = None
    """A text of the running connector or task, such as that no topic matches."""

    def body(self) -> dict[str, Any]:
        """Return the status in the form that REST uses."""
        traced = {} if self.trace is None else {"trace": self.trace}
        restarted = {"restarts": self.restarts} if self.restarts else {}
        return {
            "state": self.state.value,
            "worker_id": self.worker_id,
            "version": self.version,
            **traced,
            **restarted,
            **({} if self.note is None else {"note": self.note}),
        }


class TopicStatus(NamedTuple):
    """Records that a connector uses a topic (KIP-558)."""

    topic: str
    connector: str
    task: int
    discover_timestamp_ms: int


class StatusRecord(NamedTuple):
    """A record of the status topic; None deletes the status."""

    key: str
    value: bytes | None


Named = str | TaskId


def status_record(name: Named, status: Status) -> StatusRecord:
    if status.state is State.DESTROYED:
        return StatusRecord(_key(name), None)
    value = {
        "state": status.state.value,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
        **({"restarts": status.restarts} if status.restarts else {}),
        **({} if status.note is None else {"note": status.note}),
    }
    return StatusRecord(_key(name), json_bytes(value))


def topic_record(status: TopicStatus) -> StatusRecord:
    value = {
        "name": status.topic,
        "connector": status.connector,
        "task": status.task,
        "discoverTimestamp": status.discover_timestamp_ms,
    }
    return StatusRecord(_topic_key(status.connector, status.topic), json_bytes({"topic": value}))


def topic_removal_record(connector: str, topic: str) -> StatusRecord:
    return StatusRecord(_topic_key(connector, topic), None)


def _key(name: Named) -> str:
    return _CONNECTOR + name if isinstance(name, str) else f"{_TASK}{name}"


def _topic_key(connector: str, topic: str) -> str:
    return f"{_TOPIC}{topic}{_TOPIC_SEPARATOR}{connector}"


@dataclass(slots=True)
class StatusState:
    """All statuses, as far as the topic has been read."""

    connectors: dict[str, Status] = field(default_factory=dict)
    tasks: dict[TaskId, Status] = field(default_factory=dict)
    topics: dict[str, dict[str, TopicStatus]] = field(default_factory=dict)

    def of(self, name: Named) -> Status | None:
        return self.connectors.get(name) if isinstance(name, str) else self.tasks.get(name)

    def tasks_of(self, connector: str) -> list[tuple[TaskId, Status]]:
        return sorted(
            (task, status) for task, status in self.tasks.items() if task.connector == connector
        )

    def everything(self) -> Iterator[Named]:
        yield from self.connectors
        yield from self.tasks

    def replay(self, key: str, value: bytes | None) -> None:
        """Apply one record; an unreadable record is skipped."""
        try:
            content = None if value is None else json.loads(value)
            if key.startswith(_CONNECTOR):
                _put(self.connectors, key.removeprefix(_CONNECTOR), content)
            elif key.startswith(_TASK):
                task = TaskId.parse(key.removeprefix(_TASK))
                if task is not None:
                    _put(self.tasks, task, content)
            elif key.startswith(_TOPIC):
                self._replay_topic(key.removeprefix(_TOPIC), content)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            log.exception("status record means nothing key=%s", key)

    def _replay_topic(self, key: str, content: Any) -> None:
        topic, _, connector = key.partition(_TOPIC_SEPARATOR)
        used = self.topics.setdefault(connector, {})
        used.pop(topic, None)
        if content is not None:
            said = content["topic"]
            used[topic] = TopicStatus(
                topic, connector, int(said["task"]), int(said["discoverTimestamp"])
            )
        if not used:
            del self.topics[connector]


def _put(statuses: dict[Any, Status], name: Any, content: Any) -> None:
    if content is None:
        statuses.pop(name, None)
        return
    statuses[name] = Status(
        State(content["state"]),
        str(content["worker_id"]),
        int(content["generation"]),
        _text(content, "trace"),
        _text(content, "version"),
        int(content.get("restarts", 0)),
        _text(content, "note"),
    )


def _text(content: Any, name: str) -> str | None:
    """Return a field as a string, converted if it is of another type; None when missing."""
    found = content.get(name)
    return found if isinstance(found, str | None) else str(found)
