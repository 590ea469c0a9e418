"""Invalid input: the client gets an error or its connection is closed, and the broker goes on."""

import random
import resource
import struct

import pytest

from broker.server.apis import SERVED_APIS
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataResponse
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop

HEADER_V1 = struct.Struct(">hhih")  # api key, version, correlation id, null client id


@pytest.fixture(scope="module")
def broker() -> object:
    with LocalBroker() as started:
        yield started


@pytest.fixture(autouse=True)
def broker_lives(broker: LocalBroker) -> object:
    yield
    with RawConnection(broker.bootstrap_servers) as connection:
        response = connection.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        assert isinstance(response, MetadataResponse)
        assert len(response.brokers) == 1


def resident_bytes(broker: LocalBroker) -> int:
    with open(f"/proc/{broker.pid}/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,  # a TLS hello
        struct.pack(">i", 2**31 - 1) + b"x" * 100,
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 7) + b"x" * 7,
    ],
    ids=["http", "tls", "2 GB", "negative", "zero", "too short"],
)
def test_what_is_no_request_closes_the_connection(broker: LocalBroker, garbage: bytes) -> None:
    with RawConnection(broker.bootstrap_servers) as connection:
        connection.send(garbage)
        assert connection.is_closed_by_peer()


def test_half_a_frame_is_waited_for_and_costs_nothing(broker: LocalBroker) -> None:
    with RawConnection(broker.bootstrap_servers) as slow:
        slow.send(struct.pack(">i", 100_000_000) + b"x" * 10)
        with RawConnection(broker.bootstrap_servers) as connection:
            connection.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[]))


def test_an_unknown_api_closes_the_connection(broker: LocalBroker) -> None:
    with RawConnection(broker.bootstrap_servers) as connection:
        connection.send_frame(HEADER_V1.pack(999, 0, 1, -1))
        assert connection.is_closed_by_peer()


def test_an_unsupported_version_closes_the_connection(broker: LocalBroker) -> None:
    with RawConnection(broker.bootstrap_servers) as connection:
        connection.send_frame(HEADER_V1.pack(ApiKey.METADATA, 99, 1, -1) + bytes(20))
        assert connection.is_closed_by_peer()


def test_api_versions_in_a_version_from_the_future_is_answered_in_version_0(
    broker: LocalBroker,
) -> None:
    with RawConnection(broker.bootstrap_servers) as connection:
        connection.send_frame(HEADER_V1.pack(ApiKey.API_VERSIONS, 99, 7, -1) + bytes(20))
        frame = connection.receive_frame()
        correlation_id, error, count = struct.unpack_from(">ihi", frame)
        assert (correlation_id, error) == (7, ErrorCode.UNSUPPORTED_VERSION)
        assert len(frame) == 10 + 6 * count
        # And the same connection may go on with a version we know.
        response = connection.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest())
        assert isinstance(response, ApiVersionsResponse)
        assert response.error_code == 0
        assert count == len(response.api_keys)
        assert {api.api_key for api in response.api_keys} <= SERVED_APIS


@pytest.mark.parametrize("count", [2**31 - 1, 2**30, 1_000_000, -2])
@pytest.mark.parametrize("version", [1, 9])
def test_a_forged_array_count_costs_no_memory(
    broker: LocalBroker, count: int, version: int
) -> None:
    before = resident_bytes(broker)
    with RawConnection(broker.bootstrap_servers) as connection:
        header = HEADER_V1.pack(ApiKey.METADATA, version, 1, -1)
        if version == 1:
            connection.send_frame(header + struct.pack(">i", count))
        else:
            connection.send_frame(header + b"\x00" + b"\xff\xff\xff\xff\x07" + bytes(8))
        assert connection.is_closed_by_peer()
    assert resident_bytes(broker) - before < 10_000_000


@pytest.mark.parametrize("api_key", sorted(SERVED_APIS), ids=lambda key: ApiKey(key).name)
def test_random_bytes_after_a_header_never_hurt(broker: LocalBroker, api_key: ApiKey) -> None:
    source = random.Random(int(api_key))
    versions = API_VERSION_RANGES[api_key]
    for version in range(versions.served_min, versions.max + 1):
        for size in (0, 1, 7, 40, 400):
            with RawConnection(broker.bootstrap_servers, timeout_seconds=5) as connection:
                body = source.randbytes(size)
                connection.send_frame(HEADER_V1.pack(api_key, version, 1, -1) + body)
                # Something may come back, or the connection is closed, or it waits (a Fetch): the
                # fixture sees that the broker lives.
                connection.socket.shutdown(1)


def test_requests_without_end_and_no_reader_do_not_fill_the_brokers_memory(
    broker: LocalBroker,
) -> None:
    before = resident_bytes(broker)
    with RawConnection(broker.bootstrap_servers, timeout_seconds=2) as connection:
        header = HEADER_V1.pack(ApiKey.API_VERSIONS, 0, 1, -1)
        frames = (struct.pack(">i", len(header)) + header) * 10_000
        with pytest.raises(TimeoutError):  # the broker stops reading long before the end
            connection.send(frames * 500)
    assert resident_bytes(broker) - before < 30_000_000
