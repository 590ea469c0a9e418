"""Elects the instance that writes, as Confluent's registry does.

The instances are members of one Kafka group of protocol type `sr`. A member's metadata is its
identity in JSON. The member that the coordinator makes the group's leader names the registry's
leader in every assignment: the current leader if there is one, otherwise the eligible instance
whose URL sorts first. Instances of both kinds can therefore serve one `_schemas` topic.

An election decides which instance writes; the log shows whether another one wrote (`topic`).
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from common.credentials.access import KafkaAccess
from common.kafka.client.cluster import KafkaClient
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.group_member import GroupMember, Joined
from common.process.json_text import read_json
from schemas.registry.records import compact_json, parse_object

PROTOCOL_TYPE: Final = "sr"
PROTOCOL: Final = "v0"
_VERSION: Final = 1
_SESSION_TIMEOUT_MS: Final = 6_000
_REBALANCE_TIMEOUT_MS: Final = 6_000
_HEARTBEAT_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 0.5
_DUPLICATE_URLS: Final = 1
_LOGGED_CHARACTERS: Final = 200

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """The address of an instance, and whether it may lead."""

    host: str
    port: int
    is_eligible: bool = True
    scheme: str = "http"
    is_leader: bool = False

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    def to_json(self) -> dict[str, Any]:
        return {
            "version": _VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.is_eligible,
            "scheme": self.scheme,
            "leader": self.is_leader,
        }


def identity_from(value: Any) -> Identity:
    """Read an identity. Raises ValueError for anything else."""
    try:
        port = int(value["port"])
        identity = Identity(
            str(value["host"]),
            port,
            bool(value.get("master_eligibility", True)),
            str(value.get("scheme") or "http"),
            bool(value.get("leader", False)),
        )
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"not an identity: {error!r}") from error
    if not identity.host or not 0 < port < 2**16 or identity.scheme not in ("http", "https"):
        raise ValueError("not an identity: no address")
    return identity


class Election(NamedTuple):
    """The result of an election, in the form of the members' assignment."""

    error: int
    member_id: str | None
    leader: Identity | None

    def to_json(self) -> dict[str, Any]:
        named = {} if self.leader is None else {"master_identity": self.leader.to_json()}
        chosen = {} if self.member_id is None else {"master": self.member_id}
        return {"version": _VERSION, "error": self.error, **chosen, **named}


def elect(members: Mapping[str, Identity]) -> Election:
    """Choose the leader: the current one, otherwise the eligible one whose URL sorts first."""
    eligible = sorted(
        ((member.url, name) for name, member in members.items() if member.is_eligible)
    )
    leading = [name for _, name in eligible if members[name].is_leader]
    chosen = leading[0] if len(leading) == 1 else next((name for _, name in eligible), None)
    has_duplicates = len({member.url for member in members.values()}) < len(members)
    leader = None if chosen is None else replace(members[chosen], is_leader=True)
    return Election(_DUPLICATE_URLS if has_duplicates else 0, chosen, leader)


class Leadership:
    """One instance's membership of the group."""

    def __init__(self, kafka: KafkaAccess, group_id: str, identity: Identity) -> None:
        self.identity = identity
        self.leader: Identity | None = None
        """The leader, as far as this instance knows; None while it is unknown."""
        self.group_id = group_id
        self._kafka = kafka
        self._member_id = ""
        """The id of a former member that could not leave; the new member takes its place."""
        self._is_known = asyncio.Event()
        self._said: type[Exception] | None = None
        """The kind of failure that was logged since the leader was last known."""

    @property
    def is_leader(self) -> bool:
        return self.leader is not None and self.leader.url == self.identity.url

    async def wait_until_known(self) -> None:
        """Wait until the leader is known."""
        await self._is_known.wait()

    async def run(self) -> None:
        """Be a member until cancelled."""
        while True:
            try:
                await self._belong()
            except (KafkaError, OSError) as error:
                self._say(error)
            self._follow(None)
            await asyncio.sleep(_RETRY_SECONDS)

    def _say(self, error: Exception) -> None:
        """Log a failure once: it repeats twice a second while no broker can be reached."""
        if type(error) is not self._said:
            log.warning("registry left its group group=%s error=%r", self.group_id, error)
        self._said = type(error)

    def _follow(self, leader: Identity | None) -> None:
        if leader != self.leader:
            log.info("registry leader url=%s", None if leader is None else leader.url)
        self.leader = leader
        if leader is None:
            self._is_known.clear()
        else:
            self._said = None
            self._is_known.set()

    async def _belong(self) -> None:
        client = KafkaClient(self._kafka.bootstrap_servers, self._kafka.security)
        member = _Membership(client, self.group_id, self._member_id)
        try:
            await member.find_coordinator()
            try:
                while True:
                    self._follow(
                        await member.elect(replace(self.identity, is_leader=self.is_leader))
                    )
                    await member.stay()
            finally:
                await asyncio.shield(member.leave_if_reached())
                self._member_id = member.member_id
        finally:
            await client.close()


class _Membership(GroupMember):
    """An instance as a member: its identity is its metadata, the leader the assignment."""

    def __init__(self, client: KafkaClient, group_id: str, member_id: str) -> None:
        super().__init__(
            client,
            group_id,
            PROTOCOL_TYPE,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
        )
        self.member_id = member_id

    async def elect(self, identity: Identity) -> Identity | None:
        """Join and wait for the election; return the leader."""
        metadata = compact_json(identity.to_json()).encode()
        while True:
            try:
                joined = await self.join(lambda: {PROTOCOL: metadata})
                return _leader_in(await self.sync(_assignments(joined)))
            except KafkaError as error:
                if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
                    self.member_id = ""
                elif error.code != ErrorCode.REBALANCE_IN_PROGRESS:
                    raise

    async def stay(self) -> None:
        """Send heartbeats until the next election."""
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            if await self.heartbeat():
                return

    async def leave_if_reached(self) -> None:
        """Leave, or stay a member whose session ends."""
        try:
            await self.leave()
        except (KafkaError, OSError) as error:
            log.info("registry could not leave its group error=%r", error)


def _assignments(joined: Joined) -> dict[str, bytes]:
    if not joined.is_leader:
        return {}
    election = compact_json(elect(_members(joined.members)).to_json()).encode()
    return dict.fromkeys(joined.members, election)


def _members(joined: Mapping[str, bytes]) -> dict[str, Identity]:
    """Read the members; one whose identity cannot be read is logged and never elected."""
    members: dict[str, Identity] = {}
    for member_id, metadata in joined.items():
        try:
            members[member_id] = identity_from(read_json(metadata))
        except ValueError as error:
            log.warning(
                "registry group has a member with an invalid identity id=%s error=%s",
                *(member_id, str(error)[:_LOGGED_CHARACTERS]),
            )
    return members


def _leader_in(assignment: bytes) -> Identity | None:
    told = parse_object(assignment) or {}
    if told.get("error"):
        log.error(
            "registry group has two members with one URL: give each its own --http-host and port"
        )
    try:
        return identity_from(told.get("master_identity"))
    except ValueError:
        return None
