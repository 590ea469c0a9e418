"""A worker's membership in its group: join, run the assignment, send heartbeats, join again.

In a rebalance only revoked connectors and tasks stop. They have stopped before the worker joins
again, so the leader assigns nothing that still runs. A worker that was expelled, or has not reached
the coordinator for a whole session time-out, first stops everything: other workers may run the same
tasks.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Protocol

from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.group_member import GroupMember, Joined
from common.process.clock import now_ms
from common.process.tasks import spawn
from connect.group.assignor import Assignor
from connect.group.protocol import (
    COMPATIBLE,
    CONFIG_MISMATCH,
    PROTOCOL_TYPE,
    SESSIONED,
    VERSIONS,
    GroupAssignment,
    Metadata,
    ProtocolError,
    Share,
    decode_assignment,
    decode_metadata,
    encode_assignment,
    encode_metadata,
)
from connect.herder.herder import Assignment, Herder
from connect.herder.names import TaskId
from connect.worker.client_settings import kafka_client, librdkafka_settings
from connect.worker.settings import WorkerSettings
from millstream.connect.errors import ConnectException

_SPARE_MS: Final = 10_000


class GroupClient(GroupMember):
    """Owns the connections. Requests raise KafkaError or OSError."""

    def __init__(self, settings: WorkerSettings) -> None:
        rebalance_timeout_ms = settings["rebalance.timeout.ms"]
        said = {
            **librdkafka_settings(settings.client()),
            "bootstrap.servers": settings.bootstrap_servers,
            "client.id": settings["client.id"],
        }
        self._kafka = kafka_client(said, rebalance_timeout_ms + _SPARE_MS)
        super().__init__(
            self._kafka,
            settings["group.id"],
            PROTOCOL_TYPE,
            session_timeout_ms=settings["session.timeout.ms"],
            rebalance_timeout_ms=rebalance_timeout_ms,
        )

    async def close(self) -> None:
        """Close the connections; the worker stays a member until its session ends."""
        await self._kafka.close()


log = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 0.5
_QUIET_MS: Final = 60_000


class Shell(Protocol):
    """What the membership needs of the worker."""

    herder: Herder

    def pump(self) -> None: ...

    async def wait_until_stopped(self, share: Share) -> None:
        """Wait until no connector and no task of `share` runs."""

    async def catch_up(self) -> int:
        """Read the config topic to its end; return that offset. Raises ConnectException."""


class Membership:
    """Owns this worker's assignment."""

    def __init__(self, settings: WorkerSettings, shell: Shell, url: str) -> None:
        self._settings = settings
        self._shell = shell
        self._url = url
        self._client = GroupClient(settings)
        self._assignor = Assignor(settings["scheduled.rebalance.max.delay.ms"])
        self._current: GroupAssignment | None = None
        self._protocol = COMPATIBLE
        self._was_leader = False
        self._given: Share = Share()
        """The configured connectors and tasks at this worker's last assignment as the leader."""
        self._owners: dict[str | TaskId, str] = {}
        self._members: frozenset[str] = frozenset()
        self._rejoin = asyncio.Event()
        self._heard_ms = now_ms()
        self._said_ms = self._heard_ms - _QUIET_MS
        """When it was last logged that the group cannot be reached."""
        self._is_member = asyncio.Event()

    # --- questions of other objects ---

    @property
    def is_sessioned(self) -> bool:
        return self._protocol == SESSIONED

    @property
    def is_member(self) -> bool:
        return self._is_member.is_set()

    async def wait_until_member(self) -> None:
        await self._is_member.wait()

    def owner_url(self, name: str | TaskId) -> str | None:
        return self._owners.get(name)

    @property
    def other_urls(self) -> frozenset[str]:
        """Return the URLs of the other members, from their metadata.

        Only the leader knows the members; on other workers the set is empty.
        """
        return self._members - {self._url}

    def look_again(self) -> None:
        """Trigger a rebalance if the configured connectors or tasks have changed."""
        if self._was_leader and self._configured() != self._given:
            self._rejoin.set()

    def rejoin(self) -> None:
        """Trigger a rebalance, which elects a leader."""
        self._rejoin.set()

    def _configured(self) -> Share:
        config = self._shell.herder.config
        tasks = [task for name in config.connectors() for task in config.task_ids(name)]
        return Share(frozenset(config.connectors()), frozenset(tasks))

    # --- its life ---

    async def run(self) -> None:
        """Be a member until cancelled."""
        while True:
            try:
                while True:
                    await self._round()
            except (KafkaError, OSError, ConnectException, ProtocolError) as error:
                await self._after(error)

    async def _after(self, error: Exception) -> None:
        """Prepare to join again after a failure."""
        code = error.code if isinstance(error, KafkaError) else None
        if code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            # A member joined or left during this rebalance: there is another one. The coordinator
            # answers so only to its members, however long it let them wait.
            self._heard_ms = now_ms()
            return
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            log.warning("worker was expelled from its group error=%r", error)
            self._client.member_id = ""
            await self._drop_everything()
            return
        self._say_unreachable(error)
        if now_ms() - self._heard_ms > self._settings["session.timeout.ms"]:
            await self._drop_everything()
        await asyncio.sleep(_RETRY_SECONDS)

    def _say_unreachable(self, error: Exception) -> None:
        """Log that the group cannot be reached, once a minute: it is tried twice a second."""
        now = now_ms()
        if now - self._said_ms >= _QUIET_MS:
            self._said_ms = now
            log.warning("worker cannot reach its group error=%r", error)

    async def leave(self) -> None:
        """Leave the group; call it when everything here has stopped."""
        try:
            async with asyncio.timeout(_RETRY_SECONDS * 4):
                await self._client.leave()
        except (KafkaError, OSError, TimeoutError) as error:
            log.info("worker could not say that it leaves error=%r", error)
        await self._client.close()

    async def _drop_everything(self) -> None:
        current, self._current = self._current, None
        self._was_leader = False
        self._owners.clear()
        self._members = frozenset()
        self._is_member.clear()
        herder = self._shell.herder
        herder.assign(Assignment(generation=herder.generation))
        self._shell.pump()
        if current is not None:
            await self._shell.wait_until_stopped(current.assigned)

    async def _round(self) -> None:
        """Join, apply the assignment, and stay until there is a reason to join again."""
        self._rejoin.clear()
        # Without a broker the topic is waited for; the session of this worker ends meanwhile.
        async with asyncio.timeout(self._session_left_seconds()):
            offset = await self._shell.catch_up()
        joined = await self._client.join(lambda: self._metadata(offset))
        self._heard_ms = now_ms()
        self._protocol = joined.protocol
        decided = await self._decided(joined) if joined.is_leader else {}
        assignment = decode_assignment(await self._client.sync(decided))
        self._heard_ms = now_ms()
        if assignment.error == CONFIG_MISMATCH:
            await asyncio.sleep(_RETRY_SECONDS)
            return
        if await self._shell.catch_up() < assignment.config_offset:
            raise ConnectException("the leader knows of configurations that are not to be read")
        await self._take(assignment, joined)

    def _session_left_seconds(self) -> float | None:
        """Return how long what this worker runs is still its own; None if it runs nothing."""
        if self._current is None:
            return None
        left_ms: int = self._settings["session.timeout.ms"] - (now_ms() - self._heard_ms)
        return max(0, left_ms + 1) / 1000

    def _metadata(self, offset: int) -> Mapping[str, bytes]:
        said = Metadata(self._url, offset, self._current)
        is_sessioned = self._settings["connect.protocol"] == SESSIONED
        names = [SESSIONED, COMPATIBLE] if is_sessioned else [COMPATIBLE]
        return {name: encode_metadata(said, VERSIONS[name]) for name in names}

    # --- leading ---

    async def _decided(self, joined: Joined) -> dict[str, bytes]:
        members = {name: decode_metadata(data) for name, data in joined.members.items()}
        offset = max(each.config_offset for each in members.values())
        version = VERSIONS[joined.protocol]
        leader = GroupAssignment(joined.leader_id, members[joined.leader_id].url, offset)
        if await self._shell.catch_up() < offset:
            mismatch = replace(leader, error=CONFIG_MISMATCH)
            return dict.fromkeys(members, encode_assignment(mismatch, version))
        if not self._was_leader:
            self._assignor.forget()
        self._given = self._configured()
        shares = {name: each.share for name, each in members.items()}
        decided = self._assignor.assign(self._given, shares, now_ms())
        self._owners = {}
        self._members = frozenset(each.url for each in members.values())
        for name, share in shares.items():
            now = share - decided.revoked[name] | decided.assigned[name]
            self._owners |= dict.fromkeys(now.connectors, members[name].url)
            self._owners |= dict.fromkeys(now.tasks, members[name].url)
        log.info(
            "group decided members=%d moved=%d delay_ms=%d",
            len(members),
            sum(len(each.tasks) for each in decided.revoked.values()),
            decided.delay_ms,
        )
        return {
            name: encode_assignment(
                replace(
                    leader,
                    assigned=decided.assigned[name],
                    revoked=decided.revoked[name],
                    delay_ms=decided.delay_ms,
                ),
                version,
            )
            for name in members
        }

    # --- doing what is assigned ---

    async def _take(self, assignment: GroupAssignment, joined: Joined) -> None:
        before = Share() if self._current is None else self._current.assigned
        mine = before - assignment.revoked | assignment.assigned
        self._current = GroupAssignment(
            assignment.leader, assignment.leader_url, assignment.config_offset, mine
        )
        self._was_leader = joined.is_leader
        if not joined.is_leader:
            self._owners.clear()
            self._members = frozenset()
        self._shell.herder.assign(
            Assignment(
                mine.connectors,
                mine.tasks,
                self._client.generation,
                joined.is_leader,
                assignment.leader_url,
            )
        )
        self._shell.pump()
        self._is_member.set()
        log.info(
            "worker joined generation=%d leader=%s connectors=%d tasks=%d revoked=%d delay_ms=%d",
            self._client.generation,
            assignment.leader_url,
            len(mine.connectors),
            len(mine.tasks),
            len(assignment.revoked.tasks) + len(assignment.revoked.connectors),
            assignment.delay_ms,
        )
        self.look_again()
        await self._stay(assignment)

    async def _stay(self, assignment: GroupAssignment) -> None:
        """Send heartbeats until everything revoked has stopped and it is time to join again."""
        due_ms = now_ms() + assignment.delay_ms if assignment.delay_ms else None
        stopped = spawn(self._shell.wait_until_stopped(assignment.revoked))
        must_rejoin = bool(assignment.revoked)
        try:
            while True:
                if await self._beat():
                    must_rejoin = True
                wants = must_rejoin or self._rejoin.is_set()
                if (wants or (due_ms is not None and now_ms() >= due_ms)) and stopped.done():
                    return
                await self._pause(due_ms, stopped)
        finally:
            stopped.cancel()

    async def _beat(self) -> bool:
        try:
            is_rebalancing = await self._client.heartbeat()
        except KafkaError as error:
            if error.code != ErrorCode.ILLEGAL_GENERATION:
                raise
            is_rebalancing = True
        self._heard_ms = now_ms()
        return is_rebalancing

    async def _pause(self, due_ms: int | None, stopped: "asyncio.Future[None]") -> None:
        """Wait until the next heartbeat is due, or less when there is a reason to join again."""
        seconds = self._settings["heartbeat.interval.ms"] / 1000
        if not stopped.done():
            # The worker cannot join before everything revoked has stopped, delay or not.
            await asyncio.wait([stopped], timeout=seconds)
            return
        if due_ms is not None:
            seconds = min(seconds, max(0.0, (due_ms - now_ms()) / 1000))
        try:
            async with asyncio.timeout(seconds):
                await self._rejoin.wait()
        except TimeoutError:
            return
