"""The records of the config topic: Kafka Connect's keys and values.

Keys are plain text. Values are JSON without a schema, written as Kafka's JsonConverter writes them,
so that Apache Kafka's worker goes on where ours stopped and the other way round. (Source of the
format: KafkaConfigBackingStore.)
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from connect.herder.names import TargetState, TaskId

CONNECTOR: Final = "connector-"
TASK: Final = "task-"
COMMIT: Final = "commit-"
TARGET_STATE: Final = "target-state-"
TASK_COUNT: Final = "tasks-fencing-"
RESTART: Final = "restart-connector-"
LOGGER: Final = "logger-cluster-"
SESSION_KEY: Final = "session-key"

Config = Mapping[str, str | None]


class ConfigRecord(NamedTuple):
    key: str
    value: bytes | None


class SessionKey(NamedTuple):
    """What internal requests are signed with (KIP-507)."""

    key: bytes
    algorithm: str
    creation_timestamp_ms: int


class RestartRequest(NamedTuple):
    """Restart a connector, and perhaps its tasks, all of them or those that failed (KIP-745)."""

    connector: str
    include_tasks: bool = False
    only_failed: bool = False


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def connector_records(
    name: str, config: Config, target_state: TargetState | None = None
) -> list[ConfigRecord]:
    """A connector's configuration; a target state goes before it, so that it never runs first."""
    before = [] if target_state is None else [target_state_record(name, target_state)]
    return [*before, ConfigRecord(CONNECTOR + name, json_bytes({"properties": dict(config)}))]


def removal_records(name: str) -> list[ConfigRecord]:
    return [ConfigRecord(CONNECTOR + name, None), ConfigRecord(TARGET_STATE + name, None)]


def task_records(name: str, configs: Sequence[Config]) -> list[ConfigRecord]:
    """All tasks of a connector, and the commit record that makes them count."""
    records = [
        ConfigRecord(f"{TASK}{TaskId(name, task)}", json_bytes({"properties": dict(config)}))
        for task, config in enumerate(configs)
    ]
    return [*records, ConfigRecord(COMMIT + name, json_bytes({"tasks": len(configs)}))]


def target_state_record(name: str, state: TargetState) -> ConfigRecord:
    """A target state; workers older than STOPPED are told PAUSED."""
    old = TargetState.PAUSED if state is TargetState.STOPPED else state
    value = {"state": old.value, "state.v2": state.value}
    return ConfigRecord(TARGET_STATE + name, json_bytes(value))


def task_count_record(name: str, task_count: int) -> ConfigRecord:
    return ConfigRecord(TASK_COUNT + name, json_bytes({"task-count": task_count}))


def restart_record(request: RestartRequest) -> ConfigRecord:
    value = {"include-tasks": request.include_tasks, "only-failed": request.only_failed}
    return ConfigRecord(RESTART + request.connector, json_bytes(value))


def session_key_record(key: SessionKey) -> ConfigRecord:
    value = {
        "key": b64encode(key.key).decode(),
        "algorithm": key.algorithm,
        "creation-timestamp": key.creation_timestamp_ms,
    }
    return ConfigRecord(SESSION_KEY, json_bytes(value))


def logger_record(logger: str, level: str) -> ConfigRecord:
    return ConfigRecord(LOGGER + logger, json_bytes({"level": level}))
