"""One member of a group of any protocol type, by the four requests of the classic protocol.

librdkafka knows no other type than `consumer`, and neither does aiokafka's coordinator.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar

from common.kafka.client.cluster import GROUP, KafkaClient
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from common.kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from common.kafka.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from common.kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

LEAVE_VERSION: Final = 2
"""Of LeaveGroup: later versions name several members."""
_ELSEWHERE: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)

Answer = TypeVar("Answer", bound=Message)


class Joined(NamedTuple):
    """The coordinator's answer to a JoinGroup; only the leader's answer lists the members."""

    protocol: str
    is_leader: bool
    leader_id: str
    members: dict[str, bytes]


class GroupMember:
    """Owns the member's id and generation, and which broker coordinates the group.

    Every method raises KafkaError or ConnectionFailed; then the coordinator is looked up again.
    """

    def __init__(
        self,
        client: KafkaClient,
        group_id: str,
        protocol_type: str,
        *,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
    ) -> None:
        self._client = client
        self._group_id = group_id
        self._protocol_type = protocol_type
        self._session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._coordinator: int | None = None
        self.member_id = ""
        """Empty for a member that the group does not know."""
        self.generation = -1
        self._protocol = ""

    async def find_coordinator(self) -> None:
        """Find the broker that coordinates the group."""
        self._coordinator = await self._client.coordinator(GROUP, self._group_id)

    async def join(self, protocols: Callable[[], Mapping[str, bytes]]) -> Joined:
        """Join and wait for the others; raises UNKNOWN_MEMBER_ID when expelled."""
        while True:
            request = JoinGroupRequest(
                group_id=self._group_id,
                session_timeout_ms=self._session_timeout_ms,
                rebalance_timeout_ms=self._rebalance_timeout_ms,
                member_id=self.member_id,
                protocol_type=self._protocol_type,
                protocols=[
                    JoinGroupRequestProtocol(name=name, metadata=metadata)
                    for name, metadata in protocols().items()
                ],
            )
            joined = await self._ask(request, JoinGroupResponse)
            if joined.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                break
            self.member_id = joined.member_id
        self._check(joined.error_code)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        self._protocol = joined.protocol_name or ""
        return Joined(
            self._protocol,
            joined.leader == joined.member_id,
            joined.leader,
            {each.member_id: bytes(each.metadata) for each in joined.members},
        )

    async def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        """Send the leader's assignments and return this member's own."""
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            # KIP-559: from version 5 on both are checked.
            protocol_type=self._protocol_type,
            protocol_name=self._protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )
        synced = await self._ask(request, SyncGroupResponse)
        self._check(synced.error_code)
        return bytes(synced.assignment)

    async def heartbeat(self) -> bool:
        """Send a heartbeat; return True if a rebalance has begun."""
        request = HeartbeatRequest(
            group_id=self._group_id, generation_id=self.generation, member_id=self.member_id
        )
        answer = await self._ask(request, HeartbeatResponse)
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            return True
        self._check(answer.error_code)
        return False

    async def leave(self) -> None:
        """Leave at once, so that the others need not wait for the session to end."""
        if self.member_id and self._coordinator is not None:
            request = LeaveGroupRequest(group_id=self._group_id, member_id=self.member_id)
            await self._ask(request, LeaveGroupResponse, LEAVE_VERSION)
            self.member_id = ""

    async def _ask(
        self, request: Message, answer: type[Answer], max_version: int | None = None
    ) -> Answer:
        if self._coordinator is None:
            await self.find_coordinator()
        assert self._coordinator is not None
        try:
            return await self._client.ask(
                request, answer, self._coordinator, max_version=max_version
            )
        except (KafkaError, OSError):
            self._coordinator = None
            raise

    def _check(self, error_code: int) -> None:
        if error_code in _ELSEWHERE:
            # A broker that restarted answers, though it may not be the coordinator.
            self._coordinator = None
        if error_code:
            raise KafkaError(ErrorCode(error_code))


async def leave_group(client: KafkaClient, group_id: str, member_id: str) -> None:
    """Leave a group for a member. Raise KafkaError or ConnectionFailed."""
    coordinator = await client.coordinator(GROUP, group_id)
    request = LeaveGroupRequest(group_id=group_id, member_id=member_id)
    answer = await client.ask(request, LeaveGroupResponse, coordinator, max_version=LEAVE_VERSION)
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))
