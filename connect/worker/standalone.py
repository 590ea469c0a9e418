"""A worker by itself: configurations and statuses in memory, sources' offsets in a file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from connect.config_providers.properties import parse_properties
from connect.herder import requests
from connect.herder.herder import Herder
from connect.herder.names import RefusalError, TargetState
from connect.plugins.catalogue import Plugins
from connect.worker.environment import environment_of
from connect.worker.offset_store import FileOffsetStore
from connect.worker.settings import WorkerSettings
from connect.worker.worker import MemoryLog, Worker
from millrace.connect.errors import ConfigException


def standalone_worker(settings: WorkerSettings, plugins: Plugins, worker_id: str) -> Worker:
    """Make the worker. Raises ConfigException or ConnectException."""
    store = FileOffsetStore(Path(settings["offset.storage.file.filename"]))
    environment = environment_of(settings, plugins, store)
    herder = Herder(worker_id)
    config_log, status_log = MemoryLog(herder.replay_config), MemoryLog(herder.replay_status)
    return Worker(herder, environment, config_log, status_log)


def read_connector_file(path: Path) -> tuple[str, dict[str, Any], TargetState | None]:
    """Read a connector's name, configuration and first state. Raises ConfigException.

    A properties file, or JSON: the configuration by itself, or what POST /connectors takes.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigException(f"connector file {path} cannot be read: {error}") from error
    if path.suffix.lower() != ".json":
        return _named(path, parse_properties(text), None)
    try:
        said = json.loads(text)
    except ValueError as error:
        raise ConfigException(f"connector file {path} is no JSON: {error}") from error
    if not isinstance(said, dict):
        raise ConfigException(f"connector file {path} holds no JSON object")
    if not isinstance(said.get("config"), dict):
        return _named(path, said, None)
    state = said.get("initial_state")
    name = {"name": said["name"]} if "name" in said else {}
    return _named(path, {**name, **said["config"]}, read_initial_state(state))


def read_initial_state(said: object) -> TargetState | None:
    """Read what POST /connectors calls `initial_state`. Raises ConfigException."""
    if said is None:
        return None
    states = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED}
    found = {**states, "STOPPED": TargetState.STOPPED}.get(str(said).upper())
    if found is None:
        raise ConfigException(
            f"No enum constant ConnectorInitialState.{said}: RUNNING, PAUSED or STOPPED"
        )
    return found


def _named(
    path: Path, config: Mapping[str, Any], state: TargetState | None
) -> tuple[str, dict[str, Any], TargetState | None]:
    name = config.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigException(f"connector file {path} does not say `name`")
    return name, dict(config), state


async def add_connector(
    worker: Worker, name: str, config: Mapping[str, str | None], state: TargetState | None
) -> None:
    """Add a connector at the start. Raises ConfigException when it is already there."""
    try:
        records = requests.put_config(
            worker.herder, name, config, target_state=state, may_replace=False
        )
    except RefusalError as error:
        raise ConfigException(str(error)) from error
    await worker.write(records)
