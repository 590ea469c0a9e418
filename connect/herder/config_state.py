"""The state of the config topic: connectors, tasks, target states, the session key.

`replay` takes every record, in the order of the log, and never refuses one: an unreadable record is
skipped and logged, as in Kafka's worker. Invariants:
- A task's configuration is valid from its commit record on; all tasks of a commit become valid
  together. A commit with a missing task (compaction can remove an older record) changes nothing and
  makes the connector *inconsistent*: its leader makes the tasks again.
- `position` grows with every record, so two states of one name never have the same generation.
"""

import binascii
import json
import logging
from base64 import b64decode
from dataclasses import dataclass, field
from typing import Any, Final

from common.process.json_text import NotJsonError, read_json
from connect.herder import config_records as records
from connect.herder.config_records import Config, RestartRequest, SessionKey
from connect.herder.names import TargetState, TaskId

_MOST_TASKS: Final = 100_000
log = logging.getLogger(__name__)


@dataclass(slots=True)
class ConfigState:
    """The configuration of a Connect cluster."""

    position: int = 0
    """The number of records that were read."""
    offset: int = 0
    """The offset after the last record that was read; the workers of a group compare it."""
    session_key: SessionKey | None = None
    inconsistent: set[str] = field(default_factory=set)
    connector_configs: dict[str, Config] = field(default_factory=dict)
    target_states: dict[str, TargetState] = field(default_factory=dict)
    task_count_records: dict[str, int] = field(default_factory=dict)
    """By connector, how many tasks may have a transactional producer since the last fencing."""
    pending_fencing: set[str] = field(default_factory=set)
    """Connectors whose tasks changed after the last fencing: earlier tasks may still write."""
    applied_configs: dict[str, Config] = field(default_factory=dict)
    """By connector, the configuration from which its tasks were made."""
    _tasks: dict[str, list[Config]] = field(default_factory=dict)
    _task_counts: dict[str, int] = field(default_factory=dict)
    _deferred: dict[str, dict[int, Config]] = field(default_factory=dict)
    _connector_generations: dict[str, int] = field(default_factory=dict)
    _task_generations: dict[str, int] = field(default_factory=dict)

    # --- what it says ---

    def connectors(self) -> list[str]:
        return list(self.connector_configs)

    def target_state(self, name: str) -> TargetState:
        return self.target_states.get(name, TargetState.STARTED)

    def task_configs(self, name: str) -> list[Config]:
        """Return the valid task configurations; none while the connector is inconsistent."""
        if name not in self.connector_configs or name in self.inconsistent:
            return []
        return self._tasks.get(name, [])

    def task_ids(self, name: str) -> list[TaskId]:
        return [TaskId(name, task) for task in range(len(self.task_configs(name)))]

    def task_config(self, task: TaskId) -> Config | None:
        configs = self.task_configs(task.connector)
        return configs[task.task] if 0 <= task.task < len(configs) else None

    def producers_to_fence(self, name: str) -> int:
        """Return how many earlier tasks must be fenced before new tasks start.

        If there was one task and there is one task, the result is 0: both have the same
        transactional id, so the new task fences the old one when it starts.
        """
        before = self.task_count_records.get(name, 0)
        if name not in self.pending_fencing or before == self.task_count(name) == 1:
            return 0
        return before

    def task_count(self, name: str) -> int:
        """Return the number of tasks in the last commit, also while it is inconsistent."""
        return self._task_counts.get(name, 0)

    def connector_generation(self, name: str) -> int:
        return self._connector_generations.get(name, 0)

    def task_generation(self, name: str) -> int:
        return self._task_generations.get(name, 0)

    # --- what changes it ---

    def replay(self, key: str, value: bytes | None) -> RestartRequest | tuple[str, str] | None:
        """Apply one record.

        Returns a command, which is not part of the state: a restart, or a logger and its level.
        """
        self.position += 1
        content = _content(key, value)
        name = key.partition("-")[2]
        if key.startswith(records.TARGET_STATE):
            self._replay_target_state(key.removeprefix(records.TARGET_STATE), content)
        elif key.startswith(records.CONNECTOR):
            self._replay_connector(name, content)
        elif key.startswith(records.TASK_COUNT):
            self._replay_task_count(key.removeprefix(records.TASK_COUNT), content)
        elif key.startswith(records.TASK):
            self._replay_task(name, content)
        elif key.startswith(records.COMMIT):
            self._replay_commit(name, content)
        elif key.startswith(records.RESTART):
            return _restart(key.removeprefix(records.RESTART), content)
        elif key.startswith(records.LOGGER):
            level = None if content is None else content.get("level")
            return (key.removeprefix(records.LOGGER), level) if isinstance(level, str) else None
        elif key == records.SESSION_KEY:
            self.session_key = _session_key(content) or self.session_key
        else:
            log.error("config record has a key that means nothing key=%s", key)
        return None

    def _replay_target_state(self, name: str, content: dict[str, Any] | None) -> None:
        if content is None:
            self.target_states.pop(name, None)
            return
        # Records of workers older than STOPPED have no `state.v2`.
        said = [content.get("state.v2"), content.get("state")]
        state = next((each for each in said if isinstance(each, str)), None)
        if state not in TargetState.__members__:
            log.error("target state means nothing connector=%s state=%s", name, state)
            return
        self.target_states[name] = TargetState(state)

    def _replay_connector(self, name: str, content: dict[str, Any] | None) -> None:
        if content is None:
            self._remove(name)
            return
        config = _properties(name, content)
        if config is not None:
            self.connector_configs[name] = config
            self._connector_generations[name] = self.position

    def _replay_task(self, name: str, content: dict[str, Any] | None) -> None:
        task = TaskId.parse(name)
        config = None if content is None else _properties(name, content)
        if task is None or config is None:
            log.error("task configuration means nothing task=%s", name)
            return
        self._deferred.setdefault(task.connector, {})[task.task] = config

    def _replay_commit(self, name: str, content: dict[str, Any] | None) -> None:
        deferred = self._deferred.pop(name, {})
        if name not in self.connector_configs:
            # The connector was removed, and compaction has removed its tombstone.
            self._remove(name)
            return
        count = _count(content, "tasks")
        if count is None:
            log.error("commit record has no number of tasks connector=%s", name)
            return
        if len(deferred) == count and all(task in deferred for task in range(count)):
            self._tasks[name] = [deferred[task] for task in range(count)]
            self._task_generations[name] = self.position
            self.applied_configs[name] = self.connector_configs[name]
            self.inconsistent.discard(name)
        else:
            log.info("task configurations are not all there connector=%s tasks=%d", name, count)
            self.inconsistent.add(name)
        self._task_counts[name] = count
        self.pending_fencing.add(name)

    def _replay_task_count(self, name: str, content: dict[str, Any] | None) -> None:
        count = _count(content, "task-count")
        if count is not None:
            self.task_count_records[name] = count
            self.pending_fencing.discard(name)

    def _remove(self, name: str) -> None:
        for kept in (
            self.connector_configs,
            self.applied_configs,
            self._tasks,
            self._task_counts,
            self._deferred,
        ):
            kept.pop(name, None)
        self.inconsistent.discard(name)


def _content(key: str, value: bytes | None) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        content = read_json(value)
    except NotJsonError:
        content = None
    if not isinstance(content, dict):
        log.error("config record is no JSON object key=%s", key)
        return {}
    return content


def _count(content: dict[str, Any] | None, name: str) -> int | None:
    """Return a number of tasks; None if it is invalid or more than a connector may have."""
    found = None if content is None else content.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    return found if 0 <= found <= _MOST_TASKS else None


def _properties(name: str, content: dict[str, Any]) -> Config | None:
    """Return a configuration; a value that is not a string is converted to one."""
    properties = content.get("properties")
    if not isinstance(properties, dict):
        log.error("configuration has no properties name=%s", name)
        return None
    return {
        setting: value if isinstance(value, str | None) else json.dumps(value)
        for setting, value in properties.items()
    }


def _restart(name: str, content: dict[str, Any] | None) -> RestartRequest | None:
    if content is None:
        return None
    return RestartRequest(
        name, content.get("include-tasks") is True, content.get("only-failed") is True
    )


def _session_key(content: dict[str, Any] | None) -> SessionKey | None:
    try:
        assert content is not None
        key = b64decode(content["key"], validate=True)
        return SessionKey(key, str(content["algorithm"]), int(content["creation-timestamp"]))
    except (AssertionError, KeyError, TypeError, ValueError, OverflowError, binascii.Error):
        log.exception("session key means nothing")
        return None
