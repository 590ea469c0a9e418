"""Dedicated mode: one process runs every flow of mm2.properties, without a separate worker.

Each flow has a worker of its own Connect cluster in the target: the group `<source>-mm2` and topics
such as `mm2-configs.<source>.internal`. So several processes with the same file share the flows,
and Apache's MirrorMaker 2 can continue them. The group's leader writes the connectors'
configurations from the file.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from common.process.clock import now_ms
from connect.definitions.validation import require_valid, validate
from connect.herder import requests
from connect.herder.names import ElsewhereError, RefusalError, State
from connect.plugins.catalogue import Plugins
from connect.rest.server import RestServer
from connect.worker.distributed import Cluster
from connect.worker.settings import WorkerSettings
from millstream.connect.errors import ConnectException
from mirror.dedicated.mirror_maker_settings import CONNECTORS, MirrorMakerSettings, Pair
from mirror.dedicated.own_secrets import provider_settings, without_secrets

log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = 5.0
_PATIENCE_MS: Final = 5_000


class FlowWorker:
    """Owns a flow's worker, and creates it again after its target was unreachable."""

    def __init__(
        self, pair: Pair, settings: MirrorMakerSettings, plugins: Plugins, host: str
    ) -> None:
        """Raises ConfigException for settings that the worker or a connector refuses."""
        self.pair = pair
        self.cluster: Cluster | None = None
        self._plugins = plugins
        configs = [settings.connector(pair, name) for name in CONNECTORS]
        if (back := settings.beats_back(pair)) is not None:
            # First, so that the source has a heartbeats topic before its topics are listed.
            configs.insert(0, back)
        for config in configs:
            require_valid(validate(plugins, config))
        self.connectors: dict[str, Mapping[str, str]] = {
            each["name"]: without_secrets(each) for each in configs
        }
        worker = {**settings.worker(pair), "listeners": f"http://{host}:0"}
        worker |= provider_settings(worker, configs)
        self._settings = WorkerSettings.of(worker, is_distributed=True)

    @property
    def is_ready(self) -> bool:
        """True if the worker is a member of its group and has read its topics."""
        return self.cluster is not None and self.cluster.worker.is_ready

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            try:
                await self._work()
            except* ConnectException as error:
                first = error.exceptions[0]
                log.warning("flow has no worker now flow=%s error=%s", self.pair, first)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _work(self) -> None:
        rest = RestServer(self._settings)
        await rest.listen()
        cluster = Cluster(self._settings, self._plugins, rest.advertised)
        try:
            await rest.start(cluster.worker, cluster)
            await cluster.start()
            self.cluster = cluster
            async with asyncio.TaskGroup() as group:
                group.create_task(cluster.run())
                group.create_task(self._configure(cluster))
        finally:
            self.cluster = None
            await rest.stop()
            await cluster.stop()

    async def _configure(self, cluster: Cluster) -> None:
        """As the leader, write the connectors' configurations from the file."""
        while True:
            if cluster.herder.is_leader:
                for name, config in self.connectors.items():
                    await self._put(cluster, name, config)
                    if name not in CONNECTORS:
                        await self._wait_for(cluster, name)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _wait_for(self, cluster: Cluster, name: str) -> None:
        """Wait a limited time until a connector runs, which creates its topic."""
        deadline_ms = now_ms() + _PATIENCE_MS
        while now_ms() < deadline_ms:
            status = cluster.herder.statuses.connectors.get(name)
            if status is not None and status.state is State.RUNNING:
                return
            await asyncio.sleep(_LOOK_SECONDS / 10)

    async def _put(self, cluster: Cluster, name: str, config: Mapping[str, str]) -> None:
        if cluster.herder.config.connector_configs.get(name) == config:
            return
        try:
            records = requests.put_config(cluster.herder, name, {**config})
        except (RefusalError, ElsewhereError) as error:
            # The group has another leader.
            log.info("connector is not configured here flow=%s error=%s", self.pair, error)
            return
        await cluster.worker.write(records)
        log.info("connector configured flow=%s connector=%s", self.pair, name)
