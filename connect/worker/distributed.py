"""A distributed worker: its state is in three topics, and its group assigns its work."""

import asyncio
import hashlib
import hmac
import logging
from base64 import b64encode
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from aiohttp import ClientError, ClientSession, ClientTimeout
from yarl import URL

from common.http.guarding import peer_session
from common.http.security import OPEN, HttpSecurity
from common.process.clock import random_bytes, timestamp_ms
from common.process.tasks import spawn
from connect.group.protocol import Share
from connect.herder import effects
from connect.herder.config_records import SessionKey, json_bytes, session_key_record
from connect.herder.herder import Assignment, Herder
from connect.herder.names import TaskId
from connect.plugins.catalogue import Plugins
from connect.worker.client_settings import librdkafka_settings
from connect.worker.cluster.fencing import Fencing
from connect.worker.cluster.kafka_logs import LoopLog
from connect.worker.cluster.leader_log import LeaderLog
from connect.worker.cluster.membership import Membership
from connect.worker.environment import environment_of
from connect.worker.offsets.kafka_store import KafkaOffsetStore
from connect.worker.settings import WorkerSettings
from connect.worker.topic_log import LogTopic
from connect.worker.worker import Worker
from millstream.connect.errors import ConnectException

log = logging.getLogger(__name__)

SIGNATURE: Final = "X-Connect-Authorization"
ALGORITHM_HEADER: Final = "X-Connect-Request-Signature-Algorithm"
ALGORITHM: Final = "HmacSHA256"
_KEY_BYTES: Final = 32
_RETRY_SECONDS: Final = 1.0
_REQUEST_TIMEOUT: Final = ClientTimeout(total=90)


def signature(key: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, hashlib.sha256)


class Cluster:
    """Owns the logs of the three topics, the membership in the group, and the worker."""

    def __init__(
        self,
        settings: WorkerSettings,
        plugins: Plugins,
        worker_id: str,
        security: HttpSecurity = OPEN,
    ) -> None:
        """Raises ConfigException."""
        client = librdkafka_settings(settings.client())
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._offsets = KafkaOffsetStore(client, _topic(settings, "offset"))
        herder = Herder(worker_id, Assignment(), is_caught_up=False)
        self.config_log = LeaderLog(
            client,
            _topic(settings, "config", 1),
            herder.replay_config,
            self._config_moved,
            settings.leader_transactional_id,
        )
        self.status_log = LoopLog(
            client, _topic(settings, "status"), herder.replay_status, self._status_moved
        )
        environment = environment_of(settings, plugins, self._offsets)
        herder.is_exactly_once = environment.is_exactly_once
        self.worker = Worker(herder, environment, self.config_log, self.status_log, self)
        self.worker.is_ready = False
        self.herder = herder
        self.membership = Membership(settings, self, f"{security.scheme}://{worker_id}/")
        self._security = security
        self.config_log.shut_out = self._shut_out
        self.fencing = Fencing(self.worker, self.catch_up, self._ask_for_fencing)
        self._sending: dict[str, asyncio.Task[None]] = {}
        self.session: ClientSession | None = None

    async def start(self) -> None:
        """Read the topics. Raises ConnectException."""
        self.session = peer_session(self._security, timeout=_REQUEST_TIMEOUT)
        await asyncio.gather(
            self.config_log.start(),
            self.status_log.start(),
            asyncio.to_thread(self._offsets.start),
        )
        self.herder.is_caught_up = True

    async def run(self) -> None:
        """Be a worker until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.membership.run())
            group.create_task(self._keep_session_key())

    async def stop(self) -> None:
        await self.worker.stop()
        await self.membership.leave()
        for sending in self._sending.values():
            sending.cancel()
        self.fencing.stop()
        await self.config_log.stop()
        await self.status_log.stop()
        await asyncio.to_thread(self._offsets.stop)
        if self.session is not None:
            await self.session.close()

    # --- for the membership ---

    def _config_moved(self, position: int) -> None:
        self.herder.config.offset = position
        if self.herder.is_caught_up:
            self.worker.pump()
            self.membership.look_again()

    def _status_moved(self, position: int) -> None:
        del position
        if self.herder.has_effects:
            self.worker.pump()

    def _shut_out(self) -> None:
        """Rejoin the group to learn who leads; the leader then begins its transactions anew."""
        self._loop.call_later(_RETRY_SECONDS, self.membership.rejoin)

    def pump(self) -> None:
        self.config_log.lead(self.herder.is_leader)
        self.worker.is_ready = self.worker.is_ready or bool(self.herder.leader_url)
        self.worker.pump()

    async def wait_until_stopped(self, share: Share) -> None:
        await self.worker.wait_until_stopped(share.connectors, share.tasks)

    async def catch_up(self) -> int:
        await self.config_log.catch_up()
        return self.config_log.position

    # --- for the worker ---

    async def wait_until_member(self) -> None:
        await self.membership.wait_until_member()

    def owner_url(self, name: str | TaskId) -> str | None:
        return self.membership.owner_url(name)

    def send_task_configs(self, effect: effects.SendTaskConfigs) -> None:
        before = self._sending.pop(effect.connector, None)
        if before is not None:
            before.cancel()
        self._sending[effect.connector] = spawn(self._send(effect))

    async def _send(self, effect: effects.SendTaskConfigs) -> None:
        """Send the task configurations until the leader accepts them or a newer effect comes."""
        body = json_bytes([dict(each) for each in effect.configs])
        while self.herder.is_configured(effect.connector):
            if self.herder.is_leader:
                # This worker has become the leader.
                self.herder.reconfigure(effect.connector)
                self.worker.pump()
                return
            url = self.herder.leader_url
            try:
                if url is not None and await self._sent(url, effect.connector, body):
                    return
            except (ClientError, OSError, TimeoutError) as error:
                log.info("leader cannot be reached url=%s error=%r", url, error)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _sent(self, url: str, connector: str, body: bytes) -> bool:
        assert self.session is not None
        path = URL(url).joinpath("connectors", quote(connector, safe=""), "tasks", encoded=True)
        headers = {"Content-Type": "application/json", **self.signed(body)}
        async with self.session.post(path, data=body, headers=headers) as answer:
            if answer.status < 300:
                return True
            said = await answer.text()
            log.info("leader refuses tasks connector=%s said=%s", connector, said)
            return False

    def fence(self, effect: effects.FenceTasks | effects.AskForFencing) -> None:
        self.fencing.perform(effect)

    async def fence_now(self, name: str) -> None:
        await self.fencing.fence(name)

    async def _ask_for_fencing(self, url: str, connector: str) -> tuple[int, str]:
        assert self.session is not None
        path = URL(url).joinpath("connectors", quote(connector, safe=""), "fence", encoded=True)
        headers = {"Content-Type": "application/json", **self.signed(b"")}
        async with self.session.put(path, headers=headers) as answer:
            return answer.status, await answer.text()

    # --- internal requests ---

    def signed(self, body: bytes) -> Mapping[str, str]:
        """Return the signature headers of an internal request (KIP-507)."""
        key = self.herder.config.session_key
        if key is None or not self.membership.is_sessioned:
            return {}
        made = b64encode(signature(key.key, body)).decode()
        return {SIGNATURE: made, ALGORITHM_HEADER: ALGORITHM}

    async def _keep_session_key(self) -> None:
        """As the leader, write a new session key when there is none or it has expired."""
        ttl_ms = self._settings["inter.worker.key.ttl.ms"]
        while True:
            key = self.herder.config.session_key
            is_old = key is None or timestamp_ms() - key.creation_timestamp_ms >= ttl_ms
            is_mine = self.membership.is_member and self.herder.is_leader
            if is_mine and is_old and self.membership.is_sessioned:
                new = SessionKey(random_bytes(_KEY_BYTES), ALGORITHM, timestamp_ms())
                try:
                    await self.config_log.append([session_key_record(new)])
                except ConnectException as error:
                    log.warning("session key is not written error=%s", error)
            await asyncio.sleep(_RETRY_SECONDS)


def _topic(settings: WorkerSettings, kind: str, partitions: int | None = None) -> LogTopic:
    return LogTopic(
        settings[f"{kind}.storage.topic"],
        settings[f"{kind}.storage.partitions"] if partitions is None else partitions,
        settings[f"{kind}.storage.replication.factor"],
    )
