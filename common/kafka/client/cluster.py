"""A client of one cluster, on an event loop: it finds the nodes and chooses one for each request.

The addresses come from Metadata; before its first answer, and when no known broker answers, from
the client's settings. Every wait ends: a request and an attempt to connect after
`request_timeout_ms`. After a failed attempt an address is left alone for a pause, which doubles up
to a second. A request to any node goes to the next one when a node does not answer; one to a
certain node is sent once, and its caller decides whether it is repeated.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from common.credentials.connecting import OPEN, Security
from common.kafka.client.exchange import ConnectionFailed, parse_addresses
from common.kafka.client.on_loop import Connection
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from common.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
)
from common.process.clock import now_ms, random_number
from common.process.tasks import spawn

ANY_NODE = -1
GROUP, TRANSACTION = 0, 1
"""The kinds of coordinators."""
ONE_KEY_VERSION = 3
"""Of FindCoordinator: later versions name several keys."""
REQUEST_TIMEOUT_MS = 40_000
PAUSE_MS, MAX_PAUSE_MS = 50, 1_000

Address = tuple[str, int]
Answer = TypeVar("Answer", bound=Message)


class _Pause(NamedTuple):
    """An address that could not be reached: how long it is left alone, and until when."""

    pause_ms: int
    until_ms: int


class KafkaClient:
    """Owns one connection to each node. Every method raises ConnectionFailed or KafkaError."""

    def __init__(
        self,
        bootstrap_servers: str,
        security: Security = OPEN,
        *,
        client_id: str = "millstream",
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        self._bootstrap: Sequence[Address] = parse_addresses(bootstrap_servers, default_port=9092)
        self._security = security
        self._client_id = client_id
        self._timeout_ms = request_timeout_ms
        self._nodes: dict[int, Address] = {}
        self._connections: dict[Address, Connection] = {}
        self._opening: dict[Address, asyncio.Task[Connection]] = {}
        self._pauses: dict[Address, _Pause] = {}
        self._is_closed = False
        self._turn = random_number()
        """Requests to any node begin with another one each time."""

    # --- requests ---

    async def ask(
        self,
        request: Message,
        answer: type[Answer],
        node_id: int = ANY_NODE,
        *,
        max_version: int | None = None,
    ) -> Answer:
        """Send a request and return its answer, whatever its error codes."""
        if node_id == ANY_NODE:
            message = await self._ask_any(request, max_version)
        elif node_id not in self._nodes:
            raise ConnectionFailed(f"no node {node_id} is known")
        else:
            message = await self._ask_one(self._nodes[node_id], request, max_version)
        assert isinstance(message, answer)
        return message

    async def metadata(self, topics: Iterable[str] | None) -> MetadataResponse:
        """Return the nodes and some topics, or all of them; no topic is created."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        # Version 0 reads an empty list as all topics.
        found = await self.ask(request, MetadataResponse)
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code))
        self._learn(found.brokers)
        return found

    async def connect(self) -> None:
        """Find the nodes of the cluster."""
        await self.metadata(())

    async def coordinator(self, kind: int, key: str) -> int:
        """Return the id of the broker that coordinates a group or a transactional id."""
        request = FindCoordinatorRequest(key=key, key_type=kind)
        found = await self.ask(request, FindCoordinatorResponse, max_version=ONE_KEY_VERSION)
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code), found.error_message)
        self._nodes[found.node_id] = (found.host, found.port)
        return found.node_id

    def finalized_level(self, feature: str) -> int:
        """Return the level of a feature as the last opened connection told it, 0 if unknown."""
        for connection in reversed(self._connections.values()):
            for each in connection.api_versions.finalized_features:
                if each.name == feature:
                    return each.max_version_level
        return 0

    @property
    def node_ids(self) -> list[int]:
        """The known nodes."""
        return sorted(self._nodes)

    async def close(self) -> None:
        """Close every connection, for good."""
        self._is_closed = True
        opening = list(self._opening.values())
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # --- nodes ---

    def _learn(self, brokers: Iterable[MetadataResponseBroker]) -> None:
        self._nodes = {each.node_id: (each.host, each.port) for each in brokers}
        known = {*self._nodes.values(), *self._bootstrap}
        for address in self._connections.keys() - known:
            # A broker that is fenced may still answer what it was asked.
            if self._connections[address].is_idle:
                self._connections.pop(address).close()
        for address in self._pauses.keys() - known:
            del self._pauses[address]

    def _in_turn(self) -> list[Address]:
        """Return all addresses in the order in which they are tried."""
        nodes = sorted(set(self._nodes.values()))
        self._turn += 1
        first = self._turn % len(nodes) if nodes else 0
        addresses = dict.fromkeys([*nodes[first:], *nodes[:first], *self._bootstrap])
        # Of several that were down a moment ago, the one whose pause ends first.
        return sorted(addresses, key=self._paused_until)

    def _paused_until(self, address: Address) -> int:
        pause = self._pauses.get(address)
        return 0 if pause is None or pause.until_ms <= now_ms() else pause.until_ms

    async def _ask_any(self, request: Message, max_version: int | None) -> Message:
        failures = []
        for address in self._in_turn():
            try:
                return await self._ask_one(address, request, max_version)
            except ConnectionFailed as error:
                failures.append(str(error))
        raise ConnectionFailed("; ".join(failures))

    async def _ask_one(
        self, address: Address, request: Message, max_version: int | None
    ) -> Message:
        connection = self._connections.get(address)
        if connection is None or not connection.is_open:
            connection = await self._connected(address)
        return await connection.ask(request, self._timeout_ms, max_version)

    async def _connected(self, address: Address) -> Connection:
        """Open a connection, once for all who ask for it meanwhile."""
        if self._is_closed:
            raise ConnectionFailed("the client is closed")
        opening = self._opening.get(address)
        if opening is None:
            opening = self._opening[address] = spawn(self._open(address))
            opening.add_done_callback(lambda task: self._forget_opening(address, task))
        return await asyncio.shield(opening)

    def _forget_opening(self, address: Address, opening: asyncio.Task[Connection]) -> None:
        del self._opening[address]
        # All who asked for it may have been cancelled: then nobody else looks at its failure.
        if not opening.cancelled():
            opening.exception()

    async def _open(self, address: Address) -> Connection:
        await asyncio.sleep(max(0, self._paused_until(address) - now_ms()) / 1000)
        try:
            connection = Connection(address, self._client_id)
            await connection.open(self._security, self._timeout_ms)
        except (ConnectionFailed, KafkaError):
            known = self._pauses.get(address)
            pause_ms = PAUSE_MS if known is None else min(2 * known.pause_ms, MAX_PAUSE_MS)
            self._pauses[address] = _Pause(pause_ms, now_ms() + pause_ms)
            raise
        self._pauses.pop(address, None)
        self._connections[address] = connection
        return connection
