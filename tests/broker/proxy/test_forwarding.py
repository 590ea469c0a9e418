"""The proxy between a client and a broker that are both of bytes, in one event loop."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from broker.faults.rule import read_rule
from broker.proxy.proxy import Addresses, FaultProxy, why_not
from broker.proxy.upstream import MAX_IN_FLIGHT
from common.http.security import OPEN
from common.http.small_server import Asked, Page
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    response_frame,
)
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from common.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from common.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest

HOST = "127.0.0.1"
SECONDS = 30
UNKNOWN = (999).to_bytes(2, "big") + bytes([0, 0, 0, 0, 0, 9, 1, 2, 3])


class Behind:
    """A broker that keeps the frames it got, and answers with what it is told."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.answer: Callable[[bytes], bytes | None] = lambda frame: frame[4:8] + b"answer"
        self.port = 0
        self.writers: list[asyncio.StreamWriter] = []
        self.has_client = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        self.has_client.set()
        try:
            while True:
                frame = await read_frame(reader)
                self.frames.append(frame)
                answer = self.answer(frame)
                if answer is not None:
                    writer.write(len(answer).to_bytes(4, "big") + answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # The proxy has closed it, as it does when its client goes.


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(SECONDS):
        size = int.from_bytes(await reader.readexactly(4), "big")
        return await reader.readexactly(size)


class Talk:
    """A client's connection."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        self.writers: list[asyncio.StreamWriter] = []

    async def connect(self, port: int = 0) -> None:
        at = port or self.proxy.ways[None].port
        self.reader, self.writer = await asyncio.open_connection(HOST, at)
        self.writers.append(self.writer)

    async def ask(self, frame: bytes) -> bytes:
        self.writer.write(len(frame).to_bytes(4, "big") + frame)
        return await read_frame(self.reader)

    async def ends(self) -> bool:
        async with asyncio.timeout(SECONDS):
            return await self.reader.read() == b""


Story = Callable[[FaultProxy, Behind, Talk], Awaitable[None]]


def play(story: Story) -> None:
    async def run() -> None:
        behind = Behind()
        server = await asyncio.start_server(behind.serve, HOST, 0)
        behind.port = server.sockets[0].getsockname()[1]
        upstream = [(HOST, behind.port)]
        proxy = FaultProxy(Addresses((HOST, 0), upstream, (HOST, 0), ""), None, OPEN)
        proxy.open()
        talk = Talk(proxy)
        try:
            await talk.connect()
            await asyncio.wait_for(behind.has_client.wait(), SECONDS)
            await story(proxy, behind, talk)
        finally:
            proxy.close()
            server.close()
            for writer in (*talk.writers, *behind.writers):
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
            await server.wait_closed()

    asyncio.run(run())


def frame_of(request: Message, version: int, correlation_id: int = 5) -> bytes:
    api_key = request.__api_key__
    return encode_request(api_key, version, correlation_id, "client", request)[4:]


def header_of(api_key: int, version: int) -> RequestHeader:
    return RequestHeader(api_key, version, 5, "client")


def produce(*partitions: int, acks: int = -1) -> ProduceRequest:
    data = [PartitionProduceData(index=number, records=b"records") for number in partitions]
    return ProduceRequest(acks=acks, topic_data=[TopicProduceData(name="t", partition_data=data)])


@pytest.mark.parametrize(
    "frame", [UNKNOWN, b"\x00\x0c\x00\x04????", frame_of(HeartbeatRequest(), 4)]
)
def test_without_rules_the_same_bytes_go_both_ways(frame: bytes) -> None:
    async def story(proxy: FaultProxy, behind: Behind, talk: Talk) -> None:
        assert await talk.ask(frame) == frame[4:8] + b"answer"
        assert behind.frames == [frame]

    play(story)


def test_a_call_is_noted_with_the_errors_of_its_answer() -> None:
    answer = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)

    async def story(proxy: FaultProxy, behind: Behind, talk: Talk) -> None:
        behind.answer = lambda _: response_frame(header_of(ApiKey.HEARTBEAT, 4), answer)
        await talk.ask(frame_of(HeartbeatRequest(group_id="g"), 4))
        (noted,) = proxy.calls.since(0, {"group": "g"})
        told = noted.as_json()
        assert (told["errors"], told["principal"]) == (["REBALANCE_IN_PROGRESS"], "")

    play(story)


def test_each_broker_behind_gets_a_port_that_leads_to_it() -> None:
    async def story(proxy: FaultProxy, behind: Behind, talk: Talk) -> None:
        header = header_of(ApiKey.METADATA, 12)
        brokers = [
            MetadataResponseBroker(node_id=number, host=HOST, port=port)
            for number, port in ((1, behind.port), (2, 1))
        ]
        behind.answer = lambda _: response_frame(header, MetadataResponse(brokers=brokers))
        for _ in range(2):
            _, answer = decode_response(
                *header[:2], await talk.ask(frame_of(MetadataRequest(), 12))
            )
            assert isinstance(answer, MetadataResponse)
            ports = [each.port for each in answer.brokers]
            assert ports == [proxy.ways[HOST, behind.port].port, proxy.ways[HOST, 1].port]
        behind.answer = lambda _: b"\0\0\0\5there"
        await talk.connect(ports[0])
        assert await talk.ask(UNKNOWN) == b"\0\0\0\5there"
        await talk.connect(ports[1])  # Nobody is there: the client learns it.
        assert await talk.ends()
        assert proxy.counts.lost_connections == 1

    play(story)


def test_what_a_rule_refuses_does_not_reach_the_broker_and_the_rest_does() -> None:
    header = header_of(ApiKey.PRODUCE, 9)
    done = PartitionProduceResponse(index=1, base_offset=7)

    async def story(proxy: FaultProxy, behind: Behind, talk: Talk) -> None:
        proxy.rules.arm(
            read_rule(
                {
                    "kind": "error",
                    "api": "Produce",
                    "error": "NOT_LEADER_OR_FOLLOWER",
                    "topic": "t",
                    "partition": 0,
                    "when": {"times": 1},
                }
            )
        )
        worked = ProduceResponse(
            responses=[TopicProduceResponse(name="t", partition_responses=[done])]
        )
        behind.answer = lambda _: response_frame(header, worked)
        _, answer = decode_response(*header[:2], await talk.ask(frame_of(produce(0, 1), 9)))
        assert isinstance(answer, ProduceResponse)
        partitions = answer.responses[0].partition_responses
        found = {each.index: (each.error_code, each.base_offset) for each in partitions}
        assert found == {0: (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1), 1: (0, 7)}
        assert decode_request(behind.frames[0])[1] == produce(1)
        await talk.ask(frame_of(produce(0, 1), 9))
        assert behind.frames[1] == frame_of(produce(0, 1), 9)  # It was armed once.

    play(story)


def test_a_producer_that_wants_no_answer_gets_none() -> None:
    async def story(proxy: FaultProxy, behind: Behind, talk: Talk) -> None:
        silent = frame_of(produce(0, acks=0), 9)
        behind.answer = lambda frame: None if frame == silent else frame[4:8] + b"next"
        talk.writer.write(len(silent).to_bytes(4, "big") + silent)
        assert await talk.ask(UNKNOWN) == UNKNOWN[4:8] + b"next"

    play(story)


def test_a_login_whose_tokens_have_no_header_is_closed() -> None:
    async def story(proxy: FaultProxy, behind: Behind, talk: Talk) -> None:
        old = frame_of(SaslHandshakeRequest(mechanism="PLAIN"), 0)
        talk.writer.write(len(old).to_bytes(4, "big") + old)
        assert await talk.ends()
        assert behind.frames == []

    play(story)


def test_a_client_that_sends_faster_than_the_broker_answers_is_read_no_further() -> None:
    async def story(proxy: FaultProxy, behind: Behind, talk: Talk) -> None:
        behind.answer = lambda _: None
        count = 2 * MAX_IN_FLIGHT
        talk.writer.write((len(UNKNOWN).to_bytes(4, "big") + UNKNOWN) * count)
        (upstream,) = proxy.ways[None].forwarding._upstreams.values()
        while len(behind.frames) < MAX_IN_FLIGHT:
            await asyncio.sleep(0.01)
        assert not upstream.has_room
        for frame in list(behind.frames):
            answer = frame[4:8] + b"late"
            behind.writers[0].write(len(answer).to_bytes(4, "big") + answer)
        behind.answer = lambda frame: frame[4:8] + b"late"
        for _ in range(count):
            assert await read_frame(talk.reader) == UNKNOWN[4:8] + b"late"

    play(story)


def test_a_broker_that_goes_away_closes_its_clients() -> None:
    async def story(proxy: FaultProxy, behind: Behind, talk: Talk) -> None:
        behind.answer = lambda _: b"\0"  # No answer is as short as this.
        talk.writer.write(len(UNKNOWN).to_bytes(4, "big") + UNKNOWN)
        assert await talk.ends()

    play(story)


def test_the_control_refuses_what_a_proxy_cannot_do() -> None:
    def ask(proxy: FaultProxy, method: str, path: str, body: object = None) -> tuple[int, Any]:
        headers = {"host": HOST}
        asked = Asked(path, headers, method, body=json.dumps(body).encode() if body else b"")
        page = proxy._control.answer(asked)
        assert isinstance(page, Page)
        return page.status, json.loads(page.body)

    async def story(proxy: FaultProxy, behind: Behind, talk: Talk) -> None:
        for method, path in (("POST", "/clock"), ("GET", "/clock"), ("POST", "/snapshot")):
            status, told = ask(proxy, method, path)
            assert status == 501
            assert "--testing" in told["detail"]
        rule = {"kind": "disk", "disk": "full", "when": {"always": True}}
        status, told = ask(proxy, "POST", "/faults", rule)
        assert (status, told["detail"]) == (422, why_not(read_rule(rule)))
        named = {"kind": "delay", "ms": 1, "principal": "User:a", "when": {"times": 1}}
        assert "client_id" in ask(proxy, "POST", "/faults", named)[1]["detail"]
        assert ask(proxy, "GET", "/openapi.json")[1]["info"]["title"] == "Millstream faults"

    play(story)
