"""`millstream connect start`: runs a worker from its properties file until SIGTERM."""

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from common.credentials.access import kafka_access
from common.credentials.translation import ClientSettingsError
from common.kafka.quiet_clients import quiet_clients
from common.process import traces
from common.process.properties import read_properties
from common.process.starting import collect_seldom
from common.process.tasks import spawn
from connect.connector_file import read_connector_file
from connect.definitions.validation import require_valid, validate
from connect.herder.names import RefusalError
from connect.plugins.catalogue import Plugins
from connect.plugins.scan import find_plugins
from connect.rest.server import RestServer
from connect.worker.distributed import Cluster
from connect.worker.loggers import log_to_stderr
from connect.worker.settings import WorkerSettings
from connect.worker.standalone import (
    add_connector,
    standalone_worker,
)
from connect.worker.worker import Worker
from millstream.connect.errors import ConfigException, KafkaException

log = logging.getLogger("connect")

_DISTRIBUTED_BY = "group.id"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def serve(arguments: argparse.Namespace) -> None:
    """Run a worker. Raises KafkaException or RefusalError when it cannot start."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    written = {**_of_clients(arguments.command_config), **_read_settings(arguments.worker)}
    is_distributed = _DISTRIBUTED_BY in written
    settings = WorkerSettings.of(written, is_distributed=is_distributed)
    plugins = find_plugins(settings["plugin.path"])
    say(f"millstream connect: {plugins.count} plugins found")
    rest = RestServer(settings)
    await rest.listen()
    if is_distributed:
        await _serve_cluster(settings, plugins, rest, stopping, arguments.connectors)
    else:
        await _serve_alone(settings, plugins, rest, stopping, arguments.connectors)
    say("millstream connect stopped")


async def _serve_alone(
    settings: WorkerSettings,
    plugins: Plugins,
    rest: RestServer,
    stopping: asyncio.Event,
    connectors: Sequence[Path],
) -> None:
    worker = standalone_worker(settings, plugins, rest.advertised)
    try:
        await rest.start(worker)
        say(f"millstream connect ready on {rest.url} (standalone, worker {rest.advertised})")
        for path in connectors:
            await _add(worker, path)
        await stopping.wait()
        log.info("worker stopping on a signal")
    finally:
        await rest.stop()
        await worker.stop()


async def _serve_cluster(
    settings: WorkerSettings,
    plugins: Plugins,
    rest: RestServer,
    stopping: asyncio.Event,
    connectors: Sequence[Path],
) -> None:
    if connectors:
        raise KafkaException("connectors of a cluster are not files: use POST /connectors")
    cluster = Cluster(settings, plugins, rest.advertised, rest.security)
    running: asyncio.Task[None] | None = None
    try:
        await rest.start(cluster.worker, cluster)
        say(f"millstream connect ready on {rest.url} (group {settings['group.id']})")
        await cluster.start()
        say(f"millstream connect has read {cluster.config_log.position} configuration records")
        running = spawn(cluster.run())
        stopped = spawn(stopping.wait())
        await asyncio.wait([running, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if running.done():
            running.result()
        log.info("worker stopping on a signal")
    finally:
        await rest.stop()
        if running is not None:
            running.cancel()
            await asyncio.wait([running])
        await cluster.stop()


def _of_clients(file: str) -> dict[str, str | None]:
    """Return a file of client settings as settings of the worker's and the tasks' clients."""
    if not file:
        return {}
    try:
        access = kafka_access("", file)
    except ClientSettingsError as error:
        raise ConfigException(str(error)) from None
    own: dict[str, str | None] = {**access.properties}
    for part in ("key", "value"):
        own |= {f"{part}.converter.{name}": value for name, value in access.registry.items()}
    for kind in ("producer", "consumer", "admin"):
        own |= {f"{kind}.{name}": value for name, value in access.properties.items()}
    return own


def _read_settings(path: Path) -> dict[str, str | None]:
    try:
        return {**read_properties(path)}
    except (OSError, ValueError) as error:
        raise KafkaException(f"worker file {path} cannot be read: {error}") from error


async def _add(worker: Worker, path: Path) -> None:
    name, config, state = read_connector_file(path)
    environment = worker.environment
    resolved = environment.variables(config).filled(config)
    require_valid(await asyncio.to_thread(validate, environment.plugins, resolved))
    await add_connector(worker, name, config, state)
    say(f"millstream connect: connector {name} added from {path.name}")


def run(arguments: argparse.Namespace) -> int:
    """Run a worker; 1 when it cannot be started."""
    log_to_stderr()
    quiet_clients()
    collect_seldom()
    try:
        with traces.recorded("connect"):
            asyncio.run(serve(arguments))
    except (KafkaException, RefusalError, OSError) as error:
        sys.stderr.write(f"millstream connect: {error}\n")
        return 1
    return 0
