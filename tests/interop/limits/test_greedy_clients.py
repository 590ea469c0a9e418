"""Clients that take more than their share of a real broker, and what is left when they are gone."""

import os
import resource
import socket
from collections.abc import Iterator

import pytest

from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest
from common.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

PARKED_EACH = 300  # more than are taken in flight, so that reading stops
CLIENTS = 100


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(num_partitions=1) as started, RawConnection(started.bootstrap_servers) as one:
        one.ask(ApiKey.METADATA, 4, MetadataRequest(topics=[MetadataRequestTopic(name="orders")]))
        yield started


def open_descriptors(broker: LocalBroker) -> int:
    return len(os.listdir(f"/proc/{broker.pid}/fd"))


def endless_fetch() -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(
        max_wait_ms=2**31 - 1,
        min_bytes=1,
        max_bytes=1000,
        topics=[FetchTopic(topic="orders", partitions=[partition])],
    )
    return encode_request(ApiKey.FETCH, 4, 1, "greedy", request)


def test_clients_that_close_with_more_in_flight_than_is_read_leave_nothing(
    broker: LocalBroker,
) -> None:
    before = open_descriptors(broker)
    clients = [RawConnection(broker.bootstrap_servers) for _ in range(CLIENTS)]
    for client in clients:
        client.send(endless_fetch() * PARKED_EACH)
    with RawConnection(broker.bootstrap_servers) as other:
        other.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    assert open_descriptors(broker) >= before + CLIENTS
    for client in clients:
        client.socket.close()
    until(lambda: open_descriptors(broker) <= before + 1)  # the epoll that watched them


def test_without_descriptors_it_says_so_once_keeps_writing_and_goes_on(broker: LocalBroker) -> None:
    limit = open_descriptors(broker) + 30
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (limit, limit))
    host, port = broker.bootstrap_servers.split(":")
    with RawConnection(broker.bootstrap_servers) as before:
        many = [socket.create_connection((host, int(port))) for _ in range(60)]
        until(lambda: "accepting pauses" in broker.log())
        before.ask(ApiKey.METADATA, 4, MetadataRequest(topics=None))
        assert broker.log().count("accepting pauses") == 1
        assert open_descriptors(broker) < limit
        for one in many:
            one.close()
    with RawConnection(broker.bootstrap_servers) as after:
        after.ask(ApiKey.METADATA, 4, MetadataRequest(topics=None))
    assert broker.log().count("accepting pauses") == 1
    assert broker.log().count("accept failed") == 0
