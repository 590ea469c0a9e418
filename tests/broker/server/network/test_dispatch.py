"""From a handler to the bytes of its answer: at once, later, in pieces."""

import asyncio
import logging
import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from broker.server.network.dispatch import (
    ENTRIES_AT_ONCE,
    Answer,
    Dispatcher,
    RequestContext,
    has_more_than,
    making,
)
from broker.server.network.later import Later, Steps
from broker.server.network.request_times import RequestTimes
from broker.server.network.turns import Turns
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request, encode_response
from common.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from common.kafka.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from common.kafka.protocol.messages.elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from tests.broker.server.network.test_connection import connected, run


def dispatcher(handle: Callable[..., object]) -> Any:
    handler: Any = handle
    return Dispatcher(
        lambda api_key: handler,
        times=RequestTimes(),
        turns=Turns(asyncio.get_running_loop(), time.monotonic),
        on_queued=lambda connection: None,
        on_closed=lambda connection: None,
    )


DESCRIBE_CLUSTER = encode_request(ApiKey.DESCRIBE_CLUSTER, 0, 7, None, DescribeClusterRequest())
BROKERS = 1


@pytest.mark.parametrize("is_later", [False, True])
def test_an_answer_that_cannot_be_said_costs_one_client_its_connection(
    caplog: Any, is_later: bool
) -> None:
    # The metadata quorum, for example, completes it, and an exception there would end the node.
    later = Later()

    def wait() -> Steps[Answer]:
        yield later
        return DescribeClusterResponse(endpoint_type=2)

    def handle(context: RequestContext, request: object) -> object:
        return wait() if is_later else DescribeClusterResponse(endpoint_type=2)

    async def scenario() -> None:
        async with connected(sink=dispatcher(handle)) as (client, _, connection):
            await client.send(DESCRIBE_CLUSTER)
            while is_later and not connection.places:
                await asyncio.sleep(0)
            if is_later:
                later.done()
            assert await client.reader.read() == b""
            assert connection.is_closed

    with caplog.at_level(logging.ERROR):
        run(scenario)
    assert "cannot be said in version 0" in caplog.text


def test_a_refusal_is_answered_at_the_top_level_also_when_it_comes_later() -> None:
    def handle(context: RequestContext, request: object) -> Steps[Answer]:
        yield None
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, "no")

    async def scenario() -> None:
        async with connected(sink=dispatcher(handle)) as (client, _, _):
            await client.send(DESCRIBE_CLUSTER)
            frame = await client.receive()
        correlation_id, answer = decode_response(ApiKey.DESCRIBE_CLUSTER, 0, frame)
        assert isinstance(answer, DescribeClusterResponse)
        assert (correlation_id, answer.error_code) == (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)
        assert answer.error_message == "no"

    run(scenario)


def test_a_large_request_is_decoded_and_answered_in_steps() -> None:
    names = [f"topic-{number}" for number in range(9_000)]
    topics = [CreatableTopic(name=name) for name in names]
    request = encode_request(ApiKey.CREATE_TOPICS, 7, 1, None, CreateTopicsRequest(topics=topics))

    def handle(context: RequestContext, request: CreateTopicsRequest) -> Answer:
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=topic.name) for topic in request.topics]
        )

    async def scenario() -> None:
        async with connected(sink=dispatcher(handle)) as (client, _, _):
            await client.send(request)
            _, answer = decode_response(ApiKey.CREATE_TOPICS, 7, await client.receive())
            assert isinstance(answer, CreateTopicsResponse)
            assert [topic.name for topic in answer.topics] == names

    run(scenario)


def test_a_large_request_that_is_malformed_closes_the_connection(caplog: Any) -> None:
    start = struct.pack(">hhih", ApiKey.METADATA, 1, 1, -1) + (50_001).to_bytes(4, "big")
    frame = start + bytes(2 * 50_001)

    async def scenario() -> None:
        async with connected(sink=dispatcher(lambda *_: None)) as (client, _, _):
            await client.send(struct.pack(">i", len(frame)) + frame)
            assert await client.reader.read() == b""

    run(scenario)
    assert "has more than 50000 entries" in caplog.text


@pytest.mark.parametrize(("count", "is_large"), [(ENTRIES_AT_ONCE, False), (3_000, True)])
def test_a_large_answer_is_encoded_in_pieces(count: int, is_large: bool) -> None:
    topics = [CreatableTopicResult(name=str(number)) for number in range(count)]
    answer = CreateTopicsResponse(topics=topics)
    header: Any = Any
    context: list[Any] = []
    request = CreateTopicsRequest()

    def handle(asked: RequestContext, received: object) -> Answer:
        context.append(asked)
        return answer

    async def scenario() -> None:
        async with connected(sink=dispatcher(handle)) as (client, _, _):
            await client.send(encode_request(ApiKey.CREATE_TOPICS, 5, 7, None, request))
            await client.receive()

    run(scenario)
    header = context[0].header

    def steps() -> Steps[Answer]:
        yield from ()
        return answer

    made = making(header, steps())
    pieces = 0
    try:
        while True:
            next(made)
            pieces += 1
    except StopIteration as done:
        parts = done.value
    assert (pieces > 1) is is_large
    assert b"".join(parts) == b"".join(map(bytes, encode_response(header, answer)))  # type: ignore[arg-type]


def test_the_entries_of_arrays_in_arrays_are_counted_too() -> None:
    partitions = [PartitionResult(partition_id=number) for number in range(500)]
    result = ReplicaElectionResult(topic="orders", partition_result=partitions)
    answer = ElectLeadersResponse(replica_election_results=[result])
    assert has_more_than(500, answer)
    assert not has_more_than(501, answer)
