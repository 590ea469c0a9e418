"""Sends the group requests of one worker, over aiokafka's connections.

librdkafka supports no other group type than `consumer`, and neither does aiokafka's coordinator. So
this module sends the four requests itself, as the schema registry's election does.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from aiokafka import errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.errors import KafkaError, for_code
from aiokafka.protocol.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)

from common.kafka.brokers import find_coordinator
from connect.group.protocol import PROTOCOL_TYPE
from connect.worker.aiokafka_settings import aiokafka_settings
from connect.worker.client_settings import librdkafka_settings
from connect.worker.settings import WorkerSettings

_SPARE_MS: Final = 10_000
_ELSEWHERE: Final = {
    errors.NotCoordinatorForGroupError.errno,
    errors.GroupCoordinatorNotAvailableError.errno,
}


class Joined(NamedTuple):
    """The coordinator's answer to a JoinGroup; only the leader's answer lists the members."""

    protocol: str
    is_leader: bool
    leader_id: str
    members: dict[str, bytes]


class GroupClient:
    """Owns the connection, the member's id and the generation."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._group: str = settings["group.id"]
        self._client = AIOKafkaClient(
            request_timeout_ms=settings["rebalance.timeout.ms"] + _SPARE_MS,
            **aiokafka_settings(
                {
                    **librdkafka_settings(settings.client()),
                    "bootstrap.servers": settings.bootstrap_servers,
                    "client.id": settings["client.id"],
                }
            ),
        )
        self._is_connected = False
        self._coordinator: int | None = None
        self.member_id = ""
        self.generation = -1

    async def connect(self) -> None:
        """Connect to the bootstrap servers, once. Raises KafkaError or OSError."""
        if not self._is_connected:
            await self._client.bootstrap()
            self._is_connected = True

    async def find_coordinator(self) -> None:
        self._coordinator = await find_coordinator(
            self._client, CoordinationType.GROUP, self._group
        )

    async def close(self) -> None:
        await self._client.close()

    async def join(self, metadata: Callable[[], Mapping[str, bytes]]) -> Joined:
        """Join and wait for the others. Raises KafkaError, UnknownMemberIdError when expelled."""
        while True:
            request = JoinGroupRequest(
                self._group,
                self._settings["session.timeout.ms"],
                self._settings["rebalance.timeout.ms"],
                self.member_id,
                None,
                PROTOCOL_TYPE,
                list(metadata().items()),
            )
            joined = await self._ask(request)
            if joined.error_code != errors.MemberIdRequired.errno:
                break
            self.member_id = joined.member_id
        self._check(joined.error_code)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        members = {each[0]: bytes(each[-1]) for each in joined.members}
        is_leader = joined.leader_id == joined.member_id
        return Joined(joined.group_protocol, is_leader, joined.leader_id, members)

    async def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        """Send the leader's assignments and return this member's own. Raises KafkaError."""
        synced = await self._ask(
            SyncGroupRequest(
                self._group, self.generation, self.member_id, None, list(assignments.items())
            )
        )
        self._check(synced.error_code)
        return bytes(synced.member_assignment)

    async def heartbeat(self) -> bool:
        """Send a heartbeat; return whether a rebalance has begun. Raises KafkaError."""
        answer = await self._ask(HeartbeatRequest(self._group, self.generation, self.member_id))
        if answer.error_code == errors.RebalanceInProgressError.errno:
            return True
        self._check(answer.error_code)
        return False

    async def leave(self) -> None:
        if self.member_id and self._coordinator is not None:
            await self._ask(LeaveGroupRequest(self._group, self.member_id))
            self.member_id = ""

    async def _ask(self, request: Any) -> Any:
        if self._coordinator is None:
            await self.find_coordinator()
        try:
            return await self._client.send(
                self._coordinator, request, group=ConnectionGroup.COORDINATION
            )
        except (KafkaError, OSError):
            # The group may have another coordinator: look it up again.
            self._coordinator = None
            raise

    def _check(self, error_code: int) -> None:
        if error_code in _ELSEWHERE:
            # A broker that restarted answers, though it may not be the coordinator.
            self._coordinator = None
        if error_code:
            raise for_code(error_code)
