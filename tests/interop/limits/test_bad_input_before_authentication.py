"""Invalid input to a broker with TLS and SASL: before the handshake, between the two, and after."""

import contextlib
import random
import resource
import socket
import ssl
import struct
from collections.abc import Iterator

import pytest

from broker.server.apis import SERVED_APIS
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from common.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from common.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop

HEADER_V1 = struct.Struct(">hhih")  # api key, version, correlation id, null client id
BEFORE_SASL_BYTES = 524_288
"""sasl.server.max.receive.size"""
PLAIN = SaslHandshakeRequest(mechanism="PLAIN")
LOGIN = SaslAuthenticateRequest(auth_bytes=b"\0admin\0admin-secret")
ANY = MetadataRequest(topics=[])
FORGED_COUNT = b"\xff\xff\xff\xff\x07"
SIZES = [-(2**31), -1, 0, 7, BEFORE_SASL_BYTES + 1, 2**31 - 1]


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(security="sasl_ssl", connection_failed_authentication_delay_ms=0) as started:
        yield started


def encrypted(broker: LocalBroker) -> RawConnection:
    """Return a connection that has shaken hands, and has not authenticated."""
    connection = RawConnection(broker.bootstrap_servers, timeout_seconds=30)
    context: ssl.SSLContext = broker.client_settings("aiokafka")["ssl_context"]
    connection.socket = context.wrap_socket(connection.socket, server_hostname="localhost")
    return connection


def authenticated(broker: LocalBroker) -> RawConnection:
    connection = encrypted(broker)
    connection.ask(ApiKey.SASL_HANDSHAKE, 1, PLAIN)
    connection.ask(ApiKey.SASL_AUTHENTICATE, 1, LOGIN)
    return connection


@pytest.fixture(autouse=True)
def broker_lives(broker: LocalBroker) -> Iterator[None]:
    yield
    with authenticated(broker) as connection:
        connection.ask(ApiKey.METADATA, 9, ANY)
    log = broker.log()
    assert "Traceback" not in log, log[log.index("Traceback") :][:4_000]


def resident_bytes(broker: LocalBroker) -> int:
    with open(f"/proc/{broker.pid}/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def is_closed(connection: RawConnection) -> bool:
    """Wait for the end of a connection; an alert of TLS may come before it."""
    try:
        while connection.socket.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except (ssl.SSLError, ConnectionError):
        pass
    return True


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        encode_request(ApiKey.API_VERSIONS, 3, 1, "open", ApiVersionsRequest()),
        struct.pack(">i", 2**31 - 1) + bytes(100),
        b"\x16\x03\x01\xff\xff" + b"\x01" * 70_000,
        b"\x16\x03\x01\x00\x05\x01\xff\xff\xff\xff",
        b"\x15\x03\x03\x00\x02\x02\x28",
        b"\x17\x03\x03\x00\x20" + bytes(32),
    ],
    ids=["http", "kafka", "2 GB", "long record", "short hello", "alert", "data"],
)
def test_what_is_no_handshake_closes_the_connection(broker: LocalBroker, garbage: bytes) -> None:
    with RawConnection(broker.bootstrap_servers, timeout_seconds=30) as connection:
        connection.send(garbage)
        with contextlib.suppress(OSError):  # The broker may have closed it already.
            connection.socket.shutdown(socket.SHUT_WR)
        assert is_closed(connection)


def test_half_a_handshake_hurts_nobody_else(broker: LocalBroker) -> None:
    with RawConnection(broker.bootstrap_servers) as slow:
        slow.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        with authenticated(broker) as connection:
            connection.ask(ApiKey.METADATA, 9, ANY)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("after_handshake", [False, True], ids=["at first", "as a token"])
def test_a_size_that_is_not_allowed_before_authentication(
    broker: LocalBroker, size: int, *, after_handshake: bool
) -> None:
    before = resident_bytes(broker)
    with encrypted(broker) as connection:
        if after_handshake:
            connection.ask(ApiKey.SASL_HANDSHAKE, 1, PLAIN)
        connection.send(struct.pack(">i", size) + b"x" * 7)
        assert is_closed(connection)
    assert resident_bytes(broker) - before < 10_000_000


def test_a_frame_may_be_larger_after_authentication(broker: LocalBroker) -> None:
    """The same bytes are refused before it."""
    large = MetadataRequest(
        topics=[MetadataRequestTopic(name=f"{n:04}".ljust(249, "x")) for n in range(2_200)],
        allow_auto_topic_creation=False,
    )
    assert len(encode_request(ApiKey.METADATA, 9, 1, "c", large)) > BEFORE_SASL_BYTES + 4
    with authenticated(broker) as connection:
        connection.ask(ApiKey.METADATA, 9, large)
    with encrypted(broker) as connection, pytest.raises((ConnectionError, ssl.SSLError)):
        connection.ask(ApiKey.METADATA, 9, large)


@pytest.mark.parametrize(
    "frame",
    [
        HEADER_V1.pack(ApiKey.API_VERSIONS, 3, 1, -1) + b"\0" + FORGED_COUNT + bytes(8),
        HEADER_V1.pack(ApiKey.API_VERSIONS, 3, 1, -1) + FORGED_COUNT + bytes(8),
        HEADER_V1.pack(ApiKey.SASL_HANDSHAKE, 1, 1, -1) + b"\x7f\xff" + bytes(8),
        HEADER_V1.pack(ApiKey.SASL_AUTHENTICATE, 1, 1, -1) + b"\x7f\xff\xff\xff" + bytes(8),
        HEADER_V1.pack(ApiKey.SASL_AUTHENTICATE, 2, 1, -1) + b"\0" + FORGED_COUNT + bytes(8),
        HEADER_V1.pack(ApiKey.METADATA, 1, 1, -1) + b"\x7f\xff\xff\xff",
        HEADER_V1.pack(999, 0, 1, -1),
    ],
    ids=["string", "tags", "mechanism", "token", "compact token", "metadata", "no api"],
)
@pytest.mark.parametrize("after_handshake", [False, True], ids=["at first", "as a token"])
def test_a_forged_length_costs_no_memory_and_the_connection(
    broker: LocalBroker, frame: bytes, *, after_handshake: bool
) -> None:
    before = resident_bytes(broker)
    with encrypted(broker) as connection:
        if after_handshake:
            connection.ask(ApiKey.SASL_HANDSHAKE, 1, PLAIN)
        connection.send_frame(frame)
        assert is_closed(connection)
    assert resident_bytes(broker) - before < 10_000_000


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("version", [0, 1])
def test_random_tokens_prove_nothing(broker: LocalBroker, mechanism: str, version: int) -> None:
    source = random.Random(f"{mechanism} {version}")
    for size in (0, 1, 7, 400, 100_000):
        with encrypted(broker) as connection:
            handshake = SaslHandshakeRequest(mechanism=mechanism)
            connection.ask(ApiKey.SASL_HANDSHAKE, version, handshake)
            token = source.randbytes(size)
            if version:
                request = SaslAuthenticateRequest(auth_bytes=token)
                token = encode_request(ApiKey.SASL_AUTHENTICATE, 1, 1, "c", request)[4:]
            connection.send_frame(token)
            connection.send_frame(encode_request(ApiKey.METADATA, 9, 2, "c", ANY)[4:])
            assert is_closed(connection)


def test_no_other_api_is_answered_before_authentication(broker: LocalBroker) -> None:
    source = random.Random(1)
    for api_key in sorted(SERVED_APIS - {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}):
        version = API_VERSION_RANGES[api_key].max
        with encrypted(broker) as connection:
            body = source.randbytes(40)
            connection.send_frame(HEADER_V1.pack(api_key, version, 1, -1) + body)
            assert connection.is_closed_by_peer(), api_key.name


@pytest.mark.parametrize("api_key", [ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.SASL_AUTHENTICATE])
def test_random_bytes_after_authentication_never_hurt(broker: LocalBroker, api_key: ApiKey) -> None:
    source = random.Random(int(api_key))
    versions = API_VERSION_RANGES[api_key]
    for version in range(versions.served_min, versions.max + 1):
        for size in (0, 7, 400):
            with authenticated(broker) as connection:
                body = source.randbytes(size)
                connection.send_frame(HEADER_V1.pack(api_key, version, 1, -1) + body)
