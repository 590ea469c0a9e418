"""Invalid input of a client that has authenticated over SASL_SSL: it has rights, and means harm.

A polite client beside it produces with acks=all all the time. After each input its next record must
be acknowledged; at the end all of its records are there, once, in order. The broker's memory stays
bounded over the whole of it.
"""

import random
import resource
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.records.compression import Codec, compress
from broker.server.apis import SERVED_APIS
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import API_VERSION_RANGES, ApiKey
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from common.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from common.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from millstream.testing import LocalBroker
from tests.lib.bad_batches import BAD_BATCHES, with_payload
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

HEADER_V1 = struct.Struct(">hhih")  # api key, version, correlation id, null client id
FORGED_COUNT = b"\xff\xff\xff\xff\x07"
ANY = MetadataRequest(topics=[])
MAX_FRAME_BYTES = 104_857_600
"""socket.request.max.bytes"""
MAX_GROWTH_BYTES = 64 << 20
LONGEST_SECONDS = 10.0
"""The longest wait of the polite client for one record: far more than it takes."""


class Polite:
    """A client that produces number after number."""

    def __init__(self, broker: LocalBroker) -> None:
        self._settings = broker.client_settings("confluent-kafka")
        self.count = 0
        self.failure: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        settings = {"enable.idempotence": True, "message.timeout.ms": int(LONGEST_SECONDS * 1000)}
        producer = Producer({**self._settings, **settings})
        while not self._stop.wait(0.01) and self.failure is None:
            producer.produce("polite", b"%d" % self.count, on_delivery=self._on_delivery)
            producer.flush(2 * LONGEST_SECONDS)

    def _on_delivery(self, error: object, _: object) -> None:
        if error is not None:
            self.failure = str(error)
        self.count += 1

    def goes_on(self) -> None:
        """Wait until a record that is sent after now is acknowledged."""
        after = self.count + 2
        until(lambda: self.count >= after or self.failure is not None)
        assert self.failure is None

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def read(self) -> list[bytes]:
        consumer = Consumer({**self._settings, "group.id": "polite"})
        consumer.assign([TopicPartition("polite", 0, 0)])
        read: list[bytes] = []

        def is_complete() -> bool:
            messages = consumer.consume(10_000, 1.0)
            read.extend(each.value() or b"" for each in messages if not each.error())
            return len(read) >= self.count

        until(is_complete)
        consumer.close()
        return read


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(
        security="sasl_ssl",
        users={"mallory": "hers"},
        connection_failed_authentication_delay_ms=0,
    ) as started:
        started.create_topic("polite")
        started.create_topic("refusals")
        yield started


@pytest.fixture(scope="module")
def polite(broker: LocalBroker) -> Iterator[Polite]:
    before = resident_bytes(broker)
    client = Polite(broker)
    client.goes_on()
    yield client
    client.stop()
    assert client.read() == [b"%d" % number for number in range(client.count)]
    assert resident_bytes(broker) - before < MAX_GROWTH_BYTES
    assert "Traceback" not in broker.log()


@pytest.fixture(autouse=True)
def others_are_undisturbed(polite: Polite) -> Iterator[None]:
    yield
    polite.goes_on()


def resident_bytes(broker: LocalBroker) -> int:
    with open(f"/proc/{broker.pid}/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def login(connection: RawConnection, user: str = "mallory", password: str = "hers") -> int:
    connection.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    token = SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode())
    answer = connection.ask(ApiKey.SASL_AUTHENTICATE, 1, token)
    code: int = answer.error_code  # type: ignore[attr-defined]
    return code


def mallory(broker: LocalBroker, timeout_seconds: float = 10) -> RawConnection:
    """Return a connection that has authenticated."""
    connection = RawConnection(broker.bootstrap_servers, timeout_seconds)
    context: ssl.SSLContext = broker.client_settings("aiokafka")["ssl_context"]
    connection.socket = context.wrap_socket(connection.socket, server_hostname="localhost")
    assert login(connection) == 0
    return connection


def is_closed(connection: RawConnection) -> bool:
    """Wait for the end of a connection; answers and an alert of TLS may come before it."""
    try:
        while connection.socket.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except (ssl.SSLError, ConnectionError):
        pass
    return True


def header(api_key: int, version: int) -> bytes:
    return HEADER_V1.pack(api_key, version, 1, -1)


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 1, 7, MAX_FRAME_BYTES + 1, 2**31 - 1])
def test_a_size_that_is_not_allowed_closes_the_connection(broker: LocalBroker, size: int) -> None:
    before = resident_bytes(broker)
    with mallory(broker) as connection:
        connection.send(struct.pack(">i", size) + b"x" * 7)
        assert is_closed(connection)
    assert resident_bytes(broker) - before < 10_000_000


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    ],
    ids=["http", "a handshake within TLS"],
)
def test_what_is_no_request_closes_the_connection(broker: LocalBroker, garbage: bytes) -> None:
    with mallory(broker) as connection:
        connection.send(garbage)
        assert is_closed(connection)


@pytest.mark.parametrize(
    "record",
    [
        b"\x17\x03\x03\x00\x20" + bytes(32),
        b"\x17\x03\x03\xff\xff" + bytes(70_000),
        b"\x16\x03\x03\x00\x04\x00\x00\x00\x00",
        b"\x15\x03\x03\x00\x02\x02\x28",
        encode_request(ApiKey.METADATA, 9, 1, "not encrypted", ANY),
    ],
    ids=["forged data", "a long record", "a hello request", "an alert", "plain text"],
)
def test_a_damaged_record_of_tls_closes_the_connection(broker: LocalBroker, record: bytes) -> None:
    connection = mallory(broker)
    assert isinstance(connection.socket, ssl.SSLSocket)
    with socket.socket(fileno=connection.socket.detach()) as raw:
        raw.settimeout(10)
        with suppress(OSError):  # The broker may have closed the connection already.
            raw.sendall(record)
            raw.shutdown(socket.SHUT_WR)
        connection.socket = raw
        assert is_closed(connection)


def test_the_end_of_a_connection_without_an_alert_is_an_end(broker: LocalBroker) -> None:
    connection = mallory(broker)
    connection.send(struct.pack(">i", 1000) + b"x")
    assert isinstance(connection.socket, ssl.SSLSocket)
    with socket.socket(fileno=connection.socket.detach()) as raw:
        raw.settimeout(10)
        raw.shutdown(socket.SHUT_WR)
        connection.socket = raw
        assert is_closed(connection)


def test_half_a_frame_and_one_byte_at_a_time_hurt_nobody(
    broker: LocalBroker, polite: Polite
) -> None:
    before = resident_bytes(broker)
    with mallory(broker) as silent, mallory(broker) as slow:
        silent.send(struct.pack(">i", MAX_FRAME_BYTES) + b"x" * 10)
        for byte in encode_request(ApiKey.METADATA, 9, 1, "slow", ANY):
            slow.send(bytes([byte]))
            polite.goes_on()
        slow.receive_frame()
    assert resident_bytes(broker) - before < 10_000_000


@pytest.mark.parametrize(
    "frame",
    [
        header(999, 0),
        header(-1, 0),
        header(ApiKey.METADATA, 99) + bytes(20),
        header(ApiKey.METADATA, -1) + bytes(20),
        header(ApiKey.METADATA, 1) + struct.pack(">i", 2**31 - 1),
        header(ApiKey.METADATA, 1) + struct.pack(">i", -2),
        header(ApiKey.METADATA, 9) + b"\0" + FORGED_COUNT + bytes(8),
        header(ApiKey.METADATA, 9) + FORGED_COUNT + bytes(8),
        header(ApiKey.METADATA, 9) + b"\0" + b"\x80" * 11 + bytes(8),
        header(ApiKey.METADATA, 1) + struct.pack(">ih", 1, 2**15 - 1) + b"t",
        header(ApiKey.METADATA, 1) + struct.pack(">ih", 1, -1),
        header(ApiKey.METADATA, 1) + struct.pack(">ih", 1, 2) + b"\xff\xfe",
        header(ApiKey.PRODUCE, 3) + struct.pack(">hhii", -1, 1, 1000, 2**30),
        header(ApiKey.SASL_AUTHENTICATE, 1) + struct.pack(">i", 2**31 - 1),
        header(ApiKey.SASL_HANDSHAKE, 1) + struct.pack(">h", -7),
    ],
    ids=[
        *("no api", "negative api", "new version", "negative version", "count", "negative count"),
        *("compact count", "tags", "long varint", "string", "null", "not UTF-8"),
        *("topics", "token", "mechanism"),
    ],
)
def test_a_forged_request_costs_the_connection_and_no_memory(
    broker: LocalBroker, frame: bytes
) -> None:
    before = resident_bytes(broker)
    with mallory(broker) as connection:
        connection.send_frame(frame)
        assert is_closed(connection)
    assert resident_bytes(broker) - before < 10_000_000


def test_bytes_behind_a_request_are_left_out_as_by_kafka(broker: LocalBroker) -> None:
    with mallory(broker) as connection:
        connection.send_frame(header(ApiKey.METADATA, 1) + struct.pack(">i", 0) + b"trailing")
        assert connection.receive_frame()[:4] == struct.pack(">i", 1)
        connection.ask(ApiKey.METADATA, 9, ANY)


def test_api_versions_of_the_future_is_answered_in_version_0(broker: LocalBroker) -> None:
    with mallory(broker) as connection:
        connection.send_frame(HEADER_V1.pack(ApiKey.API_VERSIONS, 99, 7, -1) + bytes(20))
        assert struct.unpack_from(">ih", connection.receive_frame()) == (
            7,
            ErrorCode.UNSUPPORTED_VERSION,
        )
        connection.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest())


@pytest.mark.parametrize("api_key", sorted(SERVED_APIS), ids=lambda key: ApiKey(key).name)
def test_random_bytes_after_a_header_never_hurt(broker: LocalBroker, api_key: ApiKey) -> None:
    source = random.Random(int(api_key))
    version = API_VERSION_RANGES[api_key].max
    for size in (0, 7, 40, 400):
        with mallory(broker, timeout_seconds=30) as connection:
            connection.send_frame(header(api_key, version) + source.randbytes(size))


def test_requests_without_end_and_no_reader_do_not_fill_the_memory(
    broker: LocalBroker, polite: Polite
) -> None:
    before = resident_bytes(broker)
    with mallory(broker, timeout_seconds=2) as connection:
        one = header(ApiKey.API_VERSIONS, 0)
        frames = (struct.pack(">i", len(one)) + one) * 10_000
        with pytest.raises(TimeoutError):  # the broker stops reading long before the end
            connection.send(frames * 500)
        polite.goes_on()
    assert resident_bytes(broker) - before < 30_000_000


def produced(connection: RawConnection, batch: bytes) -> int:
    data = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=[TopicProduceData(name="refusals", partition_data=[data])],
    )
    answer = connection.ask(ApiKey.PRODUCE, 9, request)
    code: int = answer.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined]
    return code


def test_bad_batches_are_refused_with_their_errors(broker: LocalBroker) -> None:
    with mallory(broker, 30) as connection:
        found = {name: produced(connection, batch) for name, (batch, _) in BAD_BATCHES.items()}
    expected = {name: code for name, (_, code) in BAD_BATCHES.items()}
    for name in ("transactional without producer", "transaction marker"):
        # The request names no transactional id, which is found first.
        expected[name] = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert found == expected


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD], ids=lambda each: each.name)
def test_a_batch_that_unpacks_to_much_is_refused(broker: LocalBroker, codec: Codec) -> None:
    before = resident_bytes(broker)
    with mallory(broker, 30) as connection:
        batch = with_payload(compress(codec, bytes(192 << 20), level=1), 1, codec)
        assert produced(connection, batch) != 0
    assert resident_bytes(broker) - before < 32 << 20


WRONG_NAMES = ["", ".", "..", "../x", "a/b", "a\0b", "a b", "x" * 250, "\r\nforged", "é"]


def test_names_that_are_no_names_are_refused(broker: LocalBroker) -> None:
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in WRONG_NAMES
    ]
    topics.append(CreatableTopic(name="huge", num_partitions=2**31 - 1, replication_factor=1))
    topics.append(CreatableTopic(name="many", num_partitions=1, replication_factor=2**15 - 1))
    with mallory(broker) as connection:
        answer = connection.ask(
            ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=topics, timeout_ms=10_000)
        )
        codes = [each.error_code for each in answer.topics]  # type: ignore[attr-defined]
        assert all(codes), codes
        wanted = [MetadataRequestTopic(name=name) for name in WRONG_NAMES]
        connection.ask(ApiKey.METADATA, 9, MetadataRequest(topics=wanted))


def test_greedy_fields_are_bounded(broker: LocalBroker) -> None:
    before = resident_bytes(broker)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**31 - 1)
    endless = FetchRequest(
        max_wait_ms=2**31 - 1,
        min_bytes=2**31 - 1,
        max_bytes=2**31 - 1,
        topics=[FetchTopic(topic="polite", partitions=[partition])],
    )
    topic = OffsetCommitRequestTopic(
        name="polite",
        partitions=[
            OffsetCommitRequestPartition(
                partition_index=0, committed_offset=1, committed_metadata="x" * 5_000
            )
        ],
    )
    commit = OffsetCommitRequest(group_id="g", member_id="", topics=[topic])
    with mallory(broker) as waits, mallory(broker) as connection:
        waits.send(encode_request(ApiKey.FETCH, 11, 1, "\r\nforged line\x1b[31m", endless))
        answer = connection.ask(ApiKey.OFFSET_COMMIT, 8, commit)
        (only,) = answer.topics[0].partitions  # type: ignore[attr-defined]
        assert only.error_code in {
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.NOT_COORDINATOR,
        }
        many = MetadataRequest(
            topics=[MetadataRequestTopic(name=f"absent-{number}") for number in range(40_000)],
            allow_auto_topic_creation=False,
        )
        connection.ask(ApiKey.METADATA, 9, many)
    assert resident_bytes(broker) - before < MAX_GROWTH_BYTES
    assert "\r\nforged" not in broker.log()


# --- authentication that follows authentication ---


def sasl(connection: RawConnection, mechanism: str, *tokens: bytes) -> list[int]:
    """Authenticate again; return the error code of each answer."""
    requests: list[tuple[ApiKey, Message]] = [
        (ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism)),
        *((ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=each)) for each in tokens),
    ]
    return [connection.ask(key, 1, each).error_code for key, each in requests]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("mechanism", "tokens"),
    [
        ("PLAIN", [b"\0mallory\0wrong"]),
        ("PLAIN", [b"\0admin\0admin-secret"]),
        ("PLAIN", [b"admin\0mallory\0hers"]),
        ("PLAIN", [b""]),
        ("PLAIN", [b"\xff" * 100]),
        ("PLAIN", [b"x" * 400_000]),
        ("NONE", []),
    ],
    ids=["password", "another user", "another's name", "empty", "not UTF-8", "long", "mechanism"],
)
def test_a_second_authentication_that_is_wrong_is_refused_and_closes(
    broker: LocalBroker, mechanism: str, tokens: list[bytes]
) -> None:
    with mallory(broker) as connection:
        assert sasl(connection, mechanism, *tokens)[-1] != 0
        assert is_closed(connection)


@pytest.mark.parametrize("number", range(3))
def test_requests_of_authentication_that_are_out_of_turn_close(
    broker: LocalBroker, number: int
) -> None:
    turns: list[tuple[ApiKey, Message]] = [
        (ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=b"\0mallory\0hers")),
        (ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="SCRAM-SHA-256")),
        (ApiKey.METADATA, ANY),
    ]
    with mallory(broker) as connection:
        if number == 2:  # a request within a second authentication
            connection.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
        key, request = turns[number]
        with pytest.raises((ConnectionError, ssl.SSLError)):
            connection.ask(key, 1, request)


def test_a_second_authentication_that_is_right_goes_on(broker: LocalBroker) -> None:
    with mallory(broker) as connection:
        assert login(connection) == 0
        connection.ask(ApiKey.METADATA, 9, ANY)


def test_the_real_client_of_the_same_user_still_works(broker: LocalBroker) -> None:
    errors: list[object] = []
    producer = Producer(broker.client_settings("confluent-kafka", user="mallory"))
    producer.produce("polite-too", b"v", on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    assert errors == [None]
