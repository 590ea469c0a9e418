"""The parts of a request's time: of one answered at once, one behind it, and one that waits."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from broker.server.network.connection import Connection
from broker.server.network.dispatch import Answer, Dispatcher, RequestContext
from broker.server.network.later import Later, Steps
from broker.server.network.request_times import RequestTimes, errors_of, part_of
from broker.server.network.turns import Shared
from common.kafka.errors import ErrorCode, KafkaError
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.messages.api_versions import ApiVersionsResponse
from common.kafka.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from common.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    ReplicaState,
)
from tests.broker.server.network.test_connection import connected, run

DESCRIBE_CLUSTER = encode_request(ApiKey.DESCRIBE_CLUSTER, 0, 7, None, DescribeClusterRequest())


class Timed:
    """A dispatcher on a clock that goes on by what `reads` says at each look."""

    def __init__(self, handle: Callable[..., object]) -> None:
        self.now = 100.0
        self.times = RequestTimes()
        self.shared = Shared.of(asyncio.get_running_loop(), lambda: self.now)
        handler: Any = handle
        self.sink: Any = Dispatcher(
            lambda api_key: handler,
            times=self.times,
            turns=self.shared.turns,
            on_queued=lambda connection: None,
            on_closed=lambda connection: None,
        )

    def connected(self) -> AbstractAsyncContextManager[tuple[Any, Any, Connection]]:
        return connected(self.shared, self.sink)

    def milliseconds(self, part: str, name: str = "DescribeCluster") -> tuple[int, float, float]:
        """Give the count, the median and the highest quantile of a part."""
        count, found = part_of(dict(self.times.by_name())[name], part, self.now)
        return count, found["0.50"], found["0.999"]


def about(milliseconds: float) -> Any:
    return pytest.approx(milliseconds, rel=0.5)


def test_a_request_that_is_answered_at_once_has_local_time_only() -> None:
    async def scenario() -> None:
        def handle(context: RequestContext, request: object) -> Answer:
            timed.now += 0.010
            return DescribeClusterResponse()

        timed = Timed(handle)
        async with timed.connected() as (client, _, _):
            await client.send(DESCRIBE_CLUSTER)
            await client.receive()
        for part in ("localtimems", "totaltimems"):
            assert timed.milliseconds(part) == (1, about(10), about(10))
        for part in ("requestqueuetimems", "remotetimems", "throttletimems", "responsequeuetimems"):
            assert timed.milliseconds(part) == (1, 0, 0)
        assert timed.milliseconds("responsesendtimems") == (1, 0, 0)
        assert timed.times[ApiKey.DESCRIBE_CLUSTER].versions == {0: 1}

    run(scenario)


def test_a_request_behind_another_one_has_waited_for_it() -> None:
    async def scenario() -> None:
        def handle(context: RequestContext, request: object) -> Answer:
            timed.now += next(durations)
            return DescribeClusterResponse()

        durations: Iterator[float] = itertools.chain([0.100], itertools.repeat(0.001))
        timed = Timed(handle)
        async with timed.connected() as (client, _, _):
            await client.send(DESCRIBE_CLUSTER * 2)
            await client.receive()
            await client.receive()
        assert timed.milliseconds("requestqueuetimems") == (2, 0, about(100))
        assert timed.milliseconds("localtimems") == (2, about(1), about(100))
        assert timed.milliseconds("totaltimems")[0] == 2

    run(scenario)


def test_a_request_that_waits_has_remote_time_and_one_behind_it_waits_for_its_turn() -> None:
    async def scenario() -> None:
        laters = [Later(), Later()]
        waiting = iter(laters)

        def handle(context: RequestContext, request: object) -> Steps[Answer]:
            timed.now += 0.002
            yield next(waiting)
            timed.now += 0.004
            return DescribeClusterResponse()

        timed = Timed(handle)
        async with timed.connected() as (client, _, connection):
            await client.send(DESCRIBE_CLUSTER * 2)
            while len(connection.places) < 2:
                await asyncio.sleep(0)
            laters[1].done()  # Its answer is ready, and waits for that of the first.
            timed.now += 1
            laters[0].done()
            await client.receive()
            await client.receive()
        assert timed.milliseconds("localtimems") == (2, about(2), about(2))
        assert timed.milliseconds("remotetimems") == (2, about(6), about(1_000))
        assert timed.milliseconds("responsequeuetimems") == (2, 0, about(1_000))
        assert timed.milliseconds("totaltimems") == (2, about(1_000), about(1_000))

    run(scenario)


def test_a_client_that_does_not_read_makes_a_write_last() -> None:
    async def scenario() -> None:
        timed = Timed(lambda context, request: DescribeClusterResponse(error_message="x" * 30_000))
        count = 100
        async with timed.connected() as (client, _, connection):
            await client.send(DESCRIBE_CLUSTER * count)
            while not connection._is_writing:
                await asyncio.sleep(0)
            timed.now += 2
            for _ in range(count):
                await client.receive()
        assert timed.times[ApiKey.DESCRIBE_CLUSTER].sends.count >= 1
        assert timed.milliseconds("responsesendtimems")[2] == about(2_000)

    run(scenario)


def test_a_fetch_counts_by_who_sends_it_and_as_fetch() -> None:
    async def scenario() -> None:
        timed = Timed(lambda context, request: FetchResponse())
        consumer = encode_request(ApiKey.FETCH, 17, 1, None, FetchRequest())
        follower = FetchRequest(replica_state=ReplicaState(replica_id=2))
        async with timed.connected() as (client, _, _):
            await client.send(consumer + encode_request(ApiKey.FETCH, 17, 2, None, follower))
            await client.send(encode_request(ApiKey.FETCH, 11, 3, None, FetchRequest(replica_id=2)))
            for _ in range(3):
                await client.receive()
        counts = {
            name: timed.milliseconds("totaltimems", name)[0] for name, _ in timed.times.by_name()
        }
        assert counts == {"FetchConsumer": 1, "FetchFollower": 2, "Fetch": 3}
        assert timed.times[ApiKey.FETCH].versions == {17: 2, 11: 1}

    run(scenario)


def test_errors_count_in_every_part_of_an_answer_and_none_once_for_an_answer() -> None:
    async def scenario() -> None:
        later = Later()
        bad = [PartitionData(error_code=6), PartitionData(error_code=3), PartitionData()]
        answers = iter(
            [FetchResponse(), FetchResponse(responses=[FetchableTopicResponse(partitions=bad)])]
        )

        def handle(context: RequestContext, request: FetchRequest) -> Any:
            return next(answers) if request.max_bytes else waits()

        def waits() -> Steps[Answer]:
            yield later
            many = [PartitionData(error_code=6)] * 2_000  # An answer that is encoded in pieces.
            return FetchResponse(responses=[FetchableTopicResponse(partitions=many)])

        timed = Timed(handle)
        whole = encode_request(ApiKey.FETCH, 12, 1, None, FetchRequest())
        waiting = encode_request(ApiKey.FETCH, 12, 1, None, FetchRequest(max_bytes=0))
        async with timed.connected() as (client, _, _):
            await client.send(whole * 2 + waiting)
            await client.receive()
            await client.receive()
            found = {"NONE": 1, "NOT_LEADER_OR_FOLLOWER": 1, "UNKNOWN_TOPIC_OR_PARTITION": 1}
            assert fetch_errors(timed) == found
            later.done()
            await client.receive()
        assert fetch_errors(timed) == found | {"NOT_LEADER_OR_FOLLOWER": 2_001}

    def fetch_errors(timed: Timed) -> dict[str, int]:
        return errors_of(dict(timed.times.by_name())["Fetch"])

    run(scenario)


def test_a_refusal_and_a_version_that_is_not_served_count_as_errors() -> None:
    async def scenario() -> None:
        def handle(context: RequestContext, request: Any) -> Answer:
            if request is None:
                return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

        timed = Timed(handle)
        unknown = bytes.fromhex("0000000a 0012 0063 00000001 ffff")
        async with timed.connected() as (client, _, _):
            await client.send(DESCRIBE_CLUSTER + unknown)
            await client.receive()
            await client.receive()
        found = {name: errors_of(times) for name, times in timed.times.by_name()}
        assert found == {
            "DescribeCluster": {"NONE": 0, "CLUSTER_AUTHORIZATION_FAILED": 1},
            "ApiVersions": {"NONE": 0, "UNSUPPORTED_VERSION": 1},
        }

    run(scenario)
