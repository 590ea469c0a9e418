"""A Fetch that waits for records, and what its client asks behind it on the same connection."""

import time
from collections.abc import Iterator

import pytest

from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request
from common.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop

ANY_TOPIC = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(num_partitions=1) as started, RawConnection(started.bootstrap_servers) as one:
        one.ask(ApiKey.METADATA, 4, ANY_TOPIC)
        yield started


@pytest.fixture
def client(broker: LocalBroker) -> Iterator[RawConnection]:
    """A client that waits for an answer for ten seconds at most."""
    with RawConnection(broker.bootstrap_servers) as connected:
        yield connected


def fetch(correlation_id: int, *, max_wait_ms: int = 2**31 - 1, min_bytes: int = 1) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchTopic(topic="orders", partitions=[partition])
    request = FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=1000, topics=[topic]
    )
    return encode_request(ApiKey.FETCH, 4, correlation_id, "waiting", request)


def test_what_is_asked_behind_a_waiting_fetch_is_answered_at_once(client: RawConnection) -> None:
    client.send(fetch(1))
    client.send(encode_request(ApiKey.METADATA, 4, 2, "waiting", ANY_TOPIC))
    fetched = decode_response(ApiKey.FETCH, 4, client.receive_frame())
    assert fetched[0] == 1
    assert not fetched[1].responses[0].partitions[0].records  # type: ignore[attr-defined]
    assert decode_response(ApiKey.METADATA, 4, client.receive_frame())[0] == 2


def test_another_fetch_lets_the_first_one_wait(client: RawConnection, broker: LocalBroker) -> None:
    """A client that has two of them under way would ask without an end."""
    client.send(fetch(1))
    client.send(fetch(2))
    with RawConnection(broker.bootstrap_servers) as other:
        for _ in range(2):  # The first may have been read together with the fetches.
            other.ask(ApiKey.METADATA, 4, ANY_TOPIC)
    client.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        client.socket.recv(1)


def test_a_fetch_that_wants_more_than_a_byte_waits_whatever_is_asked_behind_it(
    client: RawConnection,
) -> None:
    started = time.monotonic()
    client.send(fetch(1, max_wait_ms=700, min_bytes=1 << 20))
    client.send(encode_request(ApiKey.METADATA, 4, 2, "waiting", ANY_TOPIC))
    assert decode_response(ApiKey.FETCH, 4, client.receive_frame())[0] == 1
    assert time.monotonic() - started > 0.69
    assert decode_response(ApiKey.METADATA, 4, client.receive_frame())[0] == 2
