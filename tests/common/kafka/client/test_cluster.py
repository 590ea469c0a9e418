"""The client on an event loop, with nodes that answer as the test says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from common.kafka.client.cluster import GROUP, KafkaClient
from common.kafka.client.exchange import ConnectionFailed
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import decode_request, encode_response
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from common.kafka.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from common.kafka.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker

VERSIONS = ApiVersionsResponse(
    api_keys=[
        ApiVersion(api_key=key, min_version=each.advertised_min, max_version=each.max)
        for key, each in API_VERSION_RANGES.items()
        if key in (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.HEARTBEAT, ApiKey.API_VERSIONS)
    ]
)
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


class Node:
    """A server; `answers` gives each request its answer, or None for silence."""

    def __init__(self, node_id: int = 1) -> None:
        self.node_id = node_id
        self.connection_count = 0
        self.asked: list[str] = []
        self.answers: dict[type[Message] | str, Any] = {}
        self.others: list[Node] = []
        self.port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def broker(self) -> MetadataResponseBroker:
        return MetadataResponseBroker(node_id=self.node_id, host="127.0.0.1", port=self.port)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        try:
            while size := await reader.readexactly(4):
                frame = await reader.readexactly(int.from_bytes(size, "big"))
                header, request = decode_request(memoryview(frame))
                name = type(request).__name__.removesuffix("Request")
                self.asked.append(name)
                answer = self.answers.get(name, self._answer)
                answer = answer(request) if callable(answer) else answer
                if isinstance(answer, bytes):
                    writer.write(answer)
                elif answer is not None:
                    writer.writelines(map(bytes, encode_response(header, answer)))
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    def _answer(self, request: Message) -> Message:
        match type(request).__name__:
            case "ApiVersionsRequest":
                return VERSIONS
            case "MetadataRequest":
                nodes = [self, *self.others]
                return MetadataResponse(brokers=[each.broker() for each in nodes])
            case "FindCoordinatorRequest":
                return FindCoordinatorResponse(
                    node_id=self.node_id, host="127.0.0.1", port=self.port
                )
        return HeartbeatResponse()


@asynccontextmanager
async def served(*nodes: Node) -> AsyncIterator[None]:
    servers = []
    for node in nodes:
        server = await asyncio.start_server(node.serve, "127.0.0.1", 0)
        node.port = server.sockets[0].getsockname()[1]
        servers.append(server)
    try:
        yield
    finally:
        for server in servers:
            server.close()


def run(
    check: Callable[[KafkaClient], Awaitable[None]], *nodes: Node, timeout_ms: int = 5_000
) -> None:
    async def with_client() -> None:
        async with served(*nodes):
            servers = ",".join(node.address for node in nodes)
            client = KafkaClient(servers, request_timeout_ms=timeout_ms)
            try:
                await check(client)
            finally:
                await client.close()

    asyncio.run(with_client())


def test_a_request_goes_to_the_node_that_coordinates() -> None:
    first, second = Node(1), Node(2)
    first.others, second.others = [second], [first]
    first.answers["FindCoordinator"] = lambda _: second._answer(FindCoordinatorRequest())

    async def check(client: KafkaClient) -> None:
        await client.connect()
        assert await client.coordinator(GROUP, "g") == 2
        await client.ask(HEARTBEAT, HeartbeatResponse, 2)

    run(check, first, second)
    assert second.asked[0] == "ApiVersions"
    assert second.asked[-1] == "Heartbeat"
    assert "Heartbeat" not in first.asked


def test_who_asks_at_the_same_time_shares_a_connection() -> None:
    node = Node()

    async def check(client: KafkaClient) -> None:
        await asyncio.gather(*(client.connect() for _ in range(20)))

    run(check, node)
    assert node.connection_count == 1
    assert node.asked.count("Metadata") == 20


def test_a_node_that_is_away_is_passed_over() -> None:
    node = Node()

    async def check(_: KafkaClient) -> None:
        client = KafkaClient(f"127.0.0.1:1,{node.address}")
        await client.connect()
        assert client.node_ids == [1]
        await client.close()

    run(check, node)


def test_who_is_silent_is_not_waited_for() -> None:
    node = Node()
    node.answers["Heartbeat"] = None

    async def check(client: KafkaClient) -> None:
        await client.connect()
        with pytest.raises(ConnectionFailed, match="did not answer in time"):
            await client.ask(HEARTBEAT, HeartbeatResponse, 1)
        # The next request has a connection of its own.
        node.answers["Heartbeat"] = HeartbeatResponse()
        await client.ask(HEARTBEAT, HeartbeatResponse, 1)

    run(check, node, timeout_ms=300)
    assert node.connection_count == 2


def test_a_port_that_accepts_and_says_nothing_is_not_waited_for() -> None:
    node = Node()
    node.answers["ApiVersions"] = None

    async def check(client: KafkaClient) -> None:
        with pytest.raises(ConnectionFailed, match="did not answer in time"):
            await asyncio.gather(*(client.connect() for _ in range(20)))

    run(check, node, timeout_ms=300)
    assert node.connection_count == 1


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x04\x7f\0\0\0", b"\xff\xff\xff\xff"]
)
def test_an_answer_that_is_none_of_kafkas(answer: bytes) -> None:
    node = Node()
    node.answers["Metadata"] = answer

    async def check(client: KafkaClient) -> None:
        with pytest.raises(ConnectionFailed):
            await client.connect()

    run(check, node)


def test_a_request_whose_caller_has_gone_leaves_the_others_their_answers() -> None:
    node = Node()

    async def check(client: KafkaClient) -> None:
        await client.connect()
        first = asyncio.ensure_future(client.ask(HEARTBEAT, HeartbeatResponse, 1))
        await asyncio.sleep(0)
        first.cancel()
        found = await client.metadata(None)
        assert [broker.node_id for broker in found.brokers] == [1]

    run(check, node)
    assert node.connection_count == 1


def test_a_refusal_is_an_error_with_its_code() -> None:
    node = Node()
    node.answers["FindCoordinator"] = FindCoordinatorResponse(
        error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
    )

    async def check(client: KafkaClient) -> None:
        with pytest.raises(KafkaError) as raised:
            await client.coordinator(GROUP, "g")
        assert raised.value.code == ErrorCode.GROUP_AUTHORIZATION_FAILED

    run(check, node)


def test_nothing_is_sent_once_it_is_closed() -> None:
    node = Node()

    async def check(client: KafkaClient) -> None:
        await client.connect()
        await client.close()
        with pytest.raises(ConnectionFailed, match="closed"):
            await client.connect()

    run(check, node)


def test_an_address_that_was_away_is_left_alone_for_a_while() -> None:
    async def check() -> None:
        client = KafkaClient("127.0.0.1:1")
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for _ in range(4):
            with pytest.raises(ConnectionFailed):
                await client.connect()
        # Pauses of 50, 100 and 200 ms.
        assert loop.time() - begun >= 0.34
        await client.close()

    asyncio.run(check())
