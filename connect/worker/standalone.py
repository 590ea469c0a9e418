"""A standalone worker: configurations and statuses in memory, source offsets in a file."""

from collections.abc import Mapping
from pathlib import Path

from connect.herder import requests
from connect.herder.herder import Herder
from connect.herder.names import RefusalError, TargetState
from connect.plugins.catalogue import Plugins
from connect.worker.environment import environment_of
from connect.worker.offsets.file_store import FileOffsetStore
from connect.worker.settings import WorkerSettings
from connect.worker.worker import MemoryLog, Worker
from millstream.connect.errors import ConfigException


def standalone_worker(settings: WorkerSettings, plugins: Plugins, worker_id: str) -> Worker:
    """Make the worker. Raises ConfigException or ConnectException."""
    store = FileOffsetStore(Path(settings["offset.storage.file.filename"]))
    environment = environment_of(settings, plugins, store)
    herder = Herder(worker_id)
    config_log, status_log = MemoryLog(herder.replay_config), MemoryLog(herder.replay_status)
    return Worker(herder, environment, config_log, status_log)


async def add_connector(
    worker: Worker, name: str, config: Mapping[str, str | None], state: TargetState | None
) -> None:
    """Add a connector at the start. Raises ConfigException when its name is taken."""
    try:
        records = requests.put_config(
            worker.herder, name, config, target_state=state, may_replace=False
        )
    except RefusalError as error:
        raise ConfigException(str(error)) from error
    await worker.write(records)
