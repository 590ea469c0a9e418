"""Checks requests against the herder's state; the result is a list of records or a refusal.

Functions here do not change the configuration. They raise `RefusalError` with Kafka Connect's
status and message, or `ElsewhereError` when another worker of the group has to answer. Otherwise
they return records, which perform the request when they are read. In a group only the leader writes
configurations, so that two writers never conflict. Any worker may write `PAUSED` and `STARTED`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from connect.herder.config_records import (
    Config,
    ConfigRecord,
    RestartRequest,
    connector_records,
    removal_records,
    restart_record,
    target_state_record,
    task_count_record,
    task_records,
)
from connect.herder.herder import Herder, restart_plan
from connect.herder.names import (
    ElsewhereError,
    State,
    TargetState,
    TaskId,
    bad_request,
    conflict,
    not_found,
)
from connect.herder.status import topic_removal_record

_SETS_CONFIGS = "Only the leader can set connector configs."


def named_config(name: str, config: Mapping[str, Any]) -> dict[str, str | None]:
    """Set `name` in a configuration. Raises RefusalError when it contains another name."""
    included = config.get("name")
    if included is not None and included != name:
        raise bad_request(
            f"Connector name configuration ({included}) doesn't match connector name in the URL "
            f"({name})"
        )
    return {**config, "name": name}


def put_config(
    herder: Herder,
    name: str,
    config: Config,
    *,
    target_state: TargetState | None = None,
    may_replace: bool = True,
) -> list[ConfigRecord]:
    """Return the records of a configuration that has been validated."""
    herder.require_leader(_SETS_CONFIGS)
    if not may_replace and herder.is_configured(name):
        raise conflict(f"Connector {name} already exists")
    return connector_records(name, config, target_state)


def patched_config(herder: Herder, name: str, patch: Config) -> dict[str, str | None]:
    """Merge a patch into a configuration; null removes a setting (KIP-477)."""
    herder.require_leader(_SETS_CONFIGS)
    config = {**connector_config(herder, name), **patch}
    return {key: value for key, value in config.items() if value is not None}


def delete(herder: Herder, name: str) -> list[ConfigRecord]:
    herder.require_leader("Only the leader can delete connector configs.")
    connector_config(herder, name)
    return removal_records(name)


def set_paused(herder: Herder, name: str, *, is_paused: bool) -> list[ConfigRecord]:
    if not herder.is_configured(name):
        raise not_found(f"Unknown connector {name}")
    state = TargetState.PAUSED if is_paused else TargetState.STARTED
    return [target_state_record(name, state)]


def stop(herder: Herder, name: str) -> list[ConfigRecord]:
    """Stop a connector and remove its tasks; the tasks first, so that none starts again."""
    if not herder.is_configured(name):
        raise not_found(f"Unknown connector {name}")
    herder.require_leader("Only the leader can transition connectors to the STOPPED state.")
    return [*task_records(name, []), target_state_record(name, TargetState.STOPPED)]


def put_tasks(herder: Herder, name: str, configs: Sequence[Config]) -> list[ConfigRecord]:
    """Return the records of task configurations that a connector on another worker made."""
    herder.require_leader("Only the leader may write task configurations.")
    connector_config(herder, name)
    if configs and herder.config.target_state(name) is TargetState.STOPPED:
        raise bad_request(
            f"Cannot submit non-empty set of task configs for stopped connector {name}"
        )
    return task_records(name, configs)


def require_fencing(herder: Herder, name: str) -> bool:
    """Return whether earlier tasks must be fenced. Raises ElsewhereError if not the leader."""
    herder.require_leader("Only the leader may perform zombie fencing.")
    if not herder.is_exactly_once(connector_config(herder, name)):
        raise bad_request(f"Connector {name} is not a source connector")
    return name in herder.config.pending_fencing


def fenced(herder: Herder, name: str, generation: int) -> list[ConfigRecord]:
    """Return the record of the new number of producers; the earlier ones are fenced."""
    if not require_fencing(herder, name):
        return []
    if herder.config.task_generation(name) != generation:
        raise conflict("Fencing failed because new task configurations were generated")
    return [task_count_record(name, herder.config.task_count(name))]


def restart_connector(herder: Herder, name: str, owner_url: str | None) -> None:
    """Restart a connector that runs here, but not its tasks."""
    if not herder.is_configured(name):
        raise not_found(f"Unknown connector: {name}")
    if not herder.has(name):
        _elsewhere(
            herder, "Cannot restart connector since it is not assigned to this member", owner_url
        )
    herder.request_restart(name)


def restart_task(herder: Herder, task: TaskId, owner_url: str | None) -> None:
    if not herder.is_configured(task.connector):
        raise not_found(f"Unknown connector: {task.connector}")
    if not herder.is_configured(task):
        raise not_found(f"Unknown task: {task}")
    if not herder.has(task):
        _elsewhere(herder, "Cannot restart task since it is not assigned to this member", owner_url)
    herder.request_restart(task)


def _elsewhere(herder: Herder, message: str, owner_url: str | None) -> None:
    """Raise ElsewhereError. Only the leader knows the owner; other workers name the leader."""
    raise ElsewhereError(message, owner_url if herder.is_leader else herder.leader_url)


def restart(
    herder: Herder, request: RestartRequest, kind: str
) -> tuple[list[ConfigRecord], dict[str, Any]]:
    """Return the record that restarts a connector and its tasks, and the status that results."""
    if not herder.is_configured(request.connector):
        raise not_found(f"Unknown connector: {request.connector}")
    herder.require_leader("Only the leader can process restart requests.")
    if request.connector not in herder.statuses.connectors:
        raise not_found(f"Status for connector {request.connector} not found")
    planned = restart_plan(herder, request)
    body = status_body(herder, request.connector, kind)
    for name in planned:
        each = body["connector"] if isinstance(name, str) else None
        for task in body["tasks"]:
            each = task if isinstance(name, TaskId) and task["id"] == name.task else each
        if each is not None:
            each["state"] = State.RESTARTING.value
    return [restart_record(request)], body


def check_offsets_may_change(herder: Herder, name: str) -> None:
    """Raise RefusalError unless the connector is stopped and has no tasks (KIP-875)."""
    herder.require_leader("Only the leader can process external offsets modification requests")
    connector_config(herder, name)
    is_stopped = herder.config.target_state(name) is TargetState.STOPPED
    if not is_stopped or herder.config.task_ids(name):
        raise bad_request(
            "Connectors must be in the STOPPED state before their offsets can be modified. This "
            "can be done for the specified connector by issuing a 'PUT' request to the "
            f"'/connectors/{name}/stop' endpoint"
        )


# --- bodies of answers ---


def connector_config(herder: Herder, name: str) -> Config:
    config = herder.config.connector_configs.get(name)
    if config is None:
        raise not_found(f"Connector {name} not found")
    return config


def info_body(herder: Herder, name: str, config: Config, kind: str) -> dict[str, Any]:
    """Return the description of a connector; `config` has no secrets."""
    tasks = [{"connector": name, "task": each.task} for each in herder.config.task_ids(name)]
    return {"name": name, "config": dict(config), "tasks": tasks, "type": kind}


def status_body(herder: Herder, name: str, kind: str) -> dict[str, Any]:
    """Return a connector's status. Raises RefusalError for a deleted one, even while it stops."""
    status = herder.statuses.connectors.get(name)
    if status is None or name not in herder.config.connector_configs:
        raise not_found(f"No status found for connector {name}")
    tasks = [{"id": task.task, **each.body()} for task, each in herder.statuses.tasks_of(name)]
    return {"name": name, "connector": status.body(), "tasks": tasks, "type": kind}


def task_status_body(herder: Herder, task: TaskId) -> dict[str, Any]:
    status = herder.statuses.tasks.get(task)
    if status is None:
        raise not_found(f"No status found for task {task}")
    return {"id": task.task, **status.body()}


def topics_body(herder: Herder, name: str) -> dict[str, Any]:
    return {name: {"topics": sorted(herder.statuses.topics.get(name, {}))}}


def reset_topics(herder: Herder, name: str) -> list[Any]:
    """Return the records that remove the topics a connector has used."""
    return [topic_removal_record(name, topic) for topic in herder.statuses.topics.get(name, {})]
