"""The records of the config topic: Kafka Connect's keys and values.

Keys are plain text. Values are JSON without a schema, in the form of Kafka's JsonConverter, so that
Apache Kafka's worker and this one can continue each other's clusters. (Source of the format:
KafkaConfigBackingStore.)
"""

import json
import re
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
_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")
"""A variable in a configuration: `${provider:path:key}`."""

Config = Mapping[str, str | None]


class ConfigRecord(NamedTuple):
    """A record of the config topic; None deletes what the key names."""

    key: str
    value: bytes | None


class SessionKey(NamedTuple):
    """The key that signs internal requests (KIP-507)."""

    key: bytes
    algorithm: str
    creation_timestamp_ms: int


class RestartRequest(NamedTuple):
    """Restarts a connector, and optionally all its tasks or the failed ones (KIP-745)."""

    connector: str
    include_tasks: bool = False
    only_failed: bool = False


def json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def connector_records(
    name: str, config: Config, target_state: TargetState | None = None
) -> list[ConfigRecord]:
    """Return a connector's configuration, preceded by its target state if one is given.

    The target state comes first so that the connector does not start in another state.
    """
    before = [] if target_state is None else [target_state_record(name, target_state)]
    return [*before, ConfigRecord(CONNECTOR + name, json_bytes({"properties": dict(config)}))]


def removal_records(name: str) -> list[ConfigRecord]:
    return [ConfigRecord(CONNECTOR + name, None), ConfigRecord(TARGET_STATE + name, None)]


def task_records(name: str, configs: Sequence[Config]) -> list[ConfigRecord]:
    """Return the records of a connector's tasks, and the commit record that makes them valid."""
    records = [
        ConfigRecord(f"{TASK}{TaskId(name, task)}", json_bytes({"properties": dict(config)}))
        for task, config in enumerate(configs)
    ]
    return [*records, ConfigRecord(COMMIT + name, json_bytes({"tasks": len(configs)}))]


def target_state_record(name: str, state: TargetState) -> ConfigRecord:
    """Return the record of a target state; workers that do not know STOPPED read PAUSED."""
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


def with_variables(connector_config: Config, task_config: Config) -> dict[str, str | None]:
    """Put the variables of the connector's configuration back into a task's configuration.

    A connector starts with the variables' values, so its task configurations contain them. A secret
    is never written to the config topic (KIP-297).
    """
    return {
        name: connector_config[name] if _has_variable(connector_config.get(name)) else value
        for name, value in task_config.items()
    }


def _has_variable(value: str | None) -> bool:
    return value is not None and _VARIABLE.search(value) is not None
