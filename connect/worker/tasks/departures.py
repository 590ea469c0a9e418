"""Leaves groups for members whose consumers could not leave.

A consumer that is closed while no broker answers leaves its group without a word, and so does
librdkafka when it gives a session up. The coordinator that returns reads such a member from its
log and keeps its partitions for a whole session, 45 s by default. The worker leaves the group for
the member as soon as the coordinator answers, and the task that runs again gets the partitions.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from common.kafka.client.cluster import KafkaClient
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.group_member import leave_group
from common.process.clock import now_ms
from common.process.tasks import spawn
from connect.worker.client_settings import kafka_client
from millstream.connect.errors import ConfigException

log = logging.getLogger(__name__)

_ANSWER_SECONDS: Final = 0.5
_REQUEST_MS: Final = 10_000
_RETRY_SECONDS: Final = 0.5
_GIVE_UP_MS: Final = 3_600_000
_MOST: Final = 1_000

Client = tuple[tuple[str, str], ...]


class Member(NamedTuple):
    """A member that its group may still count, and the librdkafka settings to reach the group."""

    client: Client
    group: str
    member_id: str


class SinkMembership:
    """A sink's consumer as a member of its group. Used only by the task's thread."""

    def __init__(
        self, consumer: Consumer, settings: Mapping[str, Any], left: Callable[[Member], None]
    ) -> None:
        """`left` is called with each member that could not leave its group."""
        told = ((name, value) for name, value in settings.items() if isinstance(value, str))
        self._consumer = consumer
        self._client: Client = tuple(sorted(told))
        self._group: str = settings["group.id"]
        self._member_id = ""
        self._left = left

    def look(self) -> None:
        """Notice that librdkafka has given up its member: its session ended unheard."""
        before, self._member_id = self._member_id, self._consumer.memberid() or ""
        if before and before != self._member_id:
            self._left(Member(self._client, self._group, before))

    def close(self) -> None:
        """Leave the group and close the consumer."""
        self.look()
        is_heard = not self._member_id or self._is_coordinator_there()
        self._consumer.close()
        if not is_heard:
            self._left(Member(self._client, self._group, self._member_id))

    def _is_coordinator_there(self) -> bool:
        # Any partition will do: only the group's coordinator answers, whatever is committed.
        anywhere = TopicPartition(self._group, 0)
        try:
            self._consumer.committed([anywhere], timeout=_ANSWER_SECONDS)
        except KafkaException:
            return False
        return True


class Departures:
    """Owns the members that are still to leave. Used only on the event loop."""

    def __init__(self, most: int = _MOST) -> None:
        """Keeps `most` members: of more, those that left first are forgotten."""
        self._most = most
        self._members: dict[Member, int] = {}
        """With the times at which they are given up."""
        self._leaving: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        return len(self._members)

    def add(self, member: Member) -> None:
        if len(self._members) >= self._most:
            del self._members[next(iter(self._members))]
        self._members[member] = now_ms() + _GIVE_UP_MS
        if self._leaving is None or self._leaving.done():
            self._leaving = spawn(self._leave_all())

    async def stop(self) -> None:
        """Forget the members that are still to leave."""
        if self._leaving is not None:
            self._leaving.cancel()
            await asyncio.gather(self._leaving, return_exceptions=True)

    async def _leave_all(self) -> None:
        while self._members:
            of_client = defaultdict(list)
            for member in self._members:
                of_client[member.client].append(member)
            await asyncio.gather(*(self._leave(*each) for each in of_client.items()))
            for member in [each for each, until in self._members.items() if until <= now_ms()]:
                log.warning("group is not told group=%s member=%s", member.group, member.member_id)
                del self._members[member]
            if self._members:
                await asyncio.sleep(_RETRY_SECONDS)

    async def _leave(self, client: Client, members: list[Member]) -> None:
        """Leave for these members, or return as soon as a request fails that is to be repeated."""
        try:
            reached = await _reached(client)
        except (KafkaError, OSError, TimeoutError, ConfigException) as error:
            log.debug("groups cannot be reached error=%r", error)
            return
        try:
            for member in members:
                await _leave(reached, member)
                self._members.pop(member, None)
        except (KafkaError, OSError, TimeoutError) as error:
            log.debug("group is told later error=%r", error)
        finally:
            await reached.close()


async def _reached(client: Client) -> KafkaClient:
    made = kafka_client(dict(client), _REQUEST_MS)
    try:
        await made.connect()
    except BaseException:
        await made.close()
        raise
    return made


async def _leave(client: KafkaClient, member: Member) -> None:
    """Raises KafkaError or OSError for a request that is to be repeated."""
    try:
        await leave_group(client, member.group, member.member_id)
    except KafkaError as error:
        if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
            return
        if error.is_retriable:
            raise
        log.warning("group is not told group=%s error=%r", member.group, error)
        return
    log.info("member left its group group=%s member=%s", member.group, member.member_id)
