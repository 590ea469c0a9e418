"""Security beside Apache Kafka in one run: TLS, handshakes of SASL_SSL, and 1,000 access rules.

`python -m bench security --rounds 2`. Both servers have one listener, SASL_SSL with the same
certificate and PLAIN users, and the StandardAuthorizer. Both have the same clients: librdkafka for
records, and raw sockets for handshakes and small requests. A second of processor time of the server
is compared as well, because client and server share the machine.
"""

import argparse
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin

from bench.lib.ports import free_port
from bench.lib.results import Results
from bench.lib.servers import ROOT, SETTINGS, ApacheKafka, Millstream, Server, find_kafka
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from common.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from common.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from millstream.processes.settings_files import PLAIN_MODULE, login_text
from millstream.testing.certificates import CertificateAuthority

TOPIC = "bench"
PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret"}
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
RECORD_BYTES = 10_000
TOTAL_BYTES = 200 * 1024 * 1024
HANDSHAKE_SECONDS = 5.0
HANDSHAKE_THREADS = 4
REQUESTS = 4_000
RULES = 1_000


class Security:
    """The certificate of the servers, and the settings of servers and clients."""

    def __init__(self, folder: Path) -> None:
        authority = CertificateAuthority(folder)
        self.certificate = authority.certificate
        self._keystore = authority.issue("localhost").keystore

    def of_server(self, port: int, controller: int) -> dict[str, str]:
        """Return the settings of a server."""
        users = {f"user_{name}": password for name, password in PASSWORDS.items()}
        jaas = login_text(PLAIN_MODULE, username="admin", password=PASSWORDS["admin"], **users)
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"SASL_SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": jaas,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificate),
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:admin;User:ANONYMOUS",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }

    def of_client(self, server: Server, user: str = "admin") -> dict[str, Any]:
        """Return the settings of a client of librdkafka."""
        return {
            "bootstrap.servers": server.bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
            "ssl.ca.location": str(self.certificate),
        }


class SecuredMillstream(Millstream):
    """Our broker with SASL_SSL."""

    def __init__(self, security: Security) -> None:
        super().__init__()
        self._security = security

    def prepare(self) -> None:
        """Write its settings."""
        given = {**SETTINGS, **self._security.of_server(self.port, free_port())}
        given["log.dirs"] = str(self.folder / "data")
        text = "".join(f"{name}={value}\n" for name, value in given.items())
        (self.folder / "server.properties").write_text(text)

    def command(self) -> list[str]:
        """Run its broker."""
        python = str(ROOT / ".venv/bin/python")
        return [python, "-P", "-m", "broker", "start", str(self.folder / "server.properties")]


class SecuredKafka(ApacheKafka):
    """Apache's node with SASL_SSL."""

    def __init__(self, libraries: Path, security: Security) -> None:
        super().__init__(libraries)
        self._security = security

    def prepare(self) -> None:
        """Write its settings, and format its folder."""
        given = {**SETTINGS, **self._security.of_server(self.port, free_port())}
        given["log.dirs"] = str(self.folder / "data")
        file = self.folder / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        format_it = ("format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(file))
        command = self._java("kafka.tools.StorageTool", *format_it)
        subprocess.run(command, check=True, capture_output=True)


def measure(server: Server, security: Security, results: Results) -> None:
    """Measure every cell on one server."""
    create_topic(server, security)
    name = server.name
    measured = measured_bytes(server, lambda: produce(server, security))
    results.add("TLS produce 10 KB, MB/s", name, measured[0])
    results.add("TLS produce, server CPU s/GB", name, measured[1], lower_is_better=True)
    measured = measured_bytes(server, lambda: consume(server, security))
    results.add("TLS consume, MB/s", name, measured[0])
    results.add("TLS consume, server CPU s/GB", name, measured[1], lower_is_better=True)
    begun = server.cpu_seconds()
    count, seconds = handshakes(server, security)
    results.add("SASL_SSL handshakes/s", name, count / seconds)
    cpu_ms = 1_000 * (server.cpu_seconds() - begun) / count
    results.add("handshake, server CPU ms", name, cpu_ms, lower_is_better=True)
    add_rules(server, security, "alice", 1)
    few_us = request_us(server, security)
    add_rules(server, security, "alice", RULES)
    many_us = request_us(server, security)
    results.add("Metadata of a topic, 1 rule, us", name, few_us, lower_is_better=True)
    results.add(f"the same, {RULES} rules, us", name, many_us, lower_is_better=True)


def create_topic(server: Server, security: Security) -> None:
    """Create the topic as soon as the server answers."""
    admin = confluent_kafka.admin.AdminClient({**security.of_client(server), "log_level": 0})
    wanted = confluent_kafka.admin.NewTopic(TOPIC, 1, 1)
    deadline = time.monotonic() + 60
    while True:
        try:
            admin.create_topics([wanted], operation_timeout=10)[TOPIC].result(15)
        except (confluent_kafka.KafkaException, TimeoutError) as error:
            if "TOPIC_ALREADY_EXISTS" in str(error):  # of an earlier attempt
                return
            if time.monotonic() > deadline:
                raise
        else:
            return


def measured_bytes(server: Server, work: Callable[[], int]) -> tuple[float, float]:
    """Return megabytes per second, and the server's processor seconds per gigabyte."""
    cpu, begun = server.cpu_seconds(), time.monotonic()
    size_bytes = work()
    seconds = time.monotonic() - begun
    return size_bytes / 1e6 / seconds, (server.cpu_seconds() - cpu) * 1e9 / size_bytes


def produce(server: Server, security: Security) -> int:
    """Produce the records; return their bytes."""
    producer = confluent_kafka.Producer(
        {
            **security.of_client(server),
            "acks": 1,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 10_000,
        }
    )
    value = bytes(RECORD_BYTES)
    count = TOTAL_BYTES // RECORD_BYTES
    for _ in range(count):
        while True:
            try:
                producer.produce(TOPIC, value)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    assert producer.flush(120) == 0
    return count * RECORD_BYTES


def consume(server: Server, security: Security) -> int:
    """Consume the records; return their bytes."""
    consumer = confluent_kafka.Consumer(
        {**security.of_client(server), "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    size_bytes = 0
    while size_bytes < TOTAL_BYTES // RECORD_BYTES * RECORD_BYTES:
        for message in consumer.consume(500, 1.0):
            assert message.error() is None, message.error()
            size_bytes += len(message.value() or b"")
    consumer.close()
    return size_bytes


def connected(server: Server, context: ssl.SSLContext, user: str) -> ssl.SSLSocket:
    """Connect and authenticate."""
    plain = socket.create_connection(("127.0.0.1", server.port), 30)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = context.wrap_socket(plain, server_hostname="localhost")
    asked(connection, encode_request(
        ApiKey.SASL_HANDSHAKE, 1, 1, "bench", SaslHandshakeRequest(mechanism="PLAIN")
    ))  # fmt: skip
    token = f"\0{user}\0{PASSWORDS[user]}".encode()
    answer = asked(connection, encode_request(
        ApiKey.SASL_AUTHENTICATE, 1, 2, "bench", SaslAuthenticateRequest(auth_bytes=token)
    ))  # fmt: skip
    assert struct.unpack_from(">h", answer, 4) == (0,), answer
    return connection


def asked(connection: ssl.SSLSocket, frame: bytes) -> bytes:
    """Send a request, and return the answer without its size."""
    connection.sendall(frame)
    (size,) = struct.unpack(">i", received(connection, 4))
    return received(connection, size)


def received(connection: ssl.SSLSocket, count: int) -> bytes:
    """Return this many bytes."""
    data = bytearray()
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        assert chunk, "the server closed the connection"
        data += chunk
    return bytes(data)


def handshakes(server: Server, security: Security) -> tuple[int, float]:
    """Connect and authenticate again and again; return how often, and the seconds."""
    counts = []
    begun = time.monotonic()

    def run() -> None:
        context = ssl.create_default_context(cafile=str(security.certificate))
        count = 0
        while time.monotonic() - begun < HANDSHAKE_SECONDS:
            connected(server, context, "alice").close()
            count += 1
        counts.append(count)

    threads = [threading.Thread(target=run) for _ in range(HANDSHAKE_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts), time.monotonic() - begun


def add_rules(server: Server, security: Security, user: str, count: int) -> None:
    """Let a user describe and read many topics, the measured one among them."""
    admin = confluent_kafka.admin.AdminClient(security.of_client(server))
    literal, prefixed = (
        confluent_kafka.admin.ResourcePatternType.LITERAL,
        confluent_kafka.admin.ResourcePatternType.PREFIXED,
    )
    rules = [
        confluent_kafka.admin.AclBinding(
            confluent_kafka.admin.ResourceType.TOPIC,
            TOPIC if number == 0 else f"other-{number}",
            literal if number % 2 == 0 else prefixed,
            f"User:{user}",
            "*",
            confluent_kafka.admin.AclOperation.READ,
            confluent_kafka.admin.AclPermissionType.ALLOW,
        )
        for number in range(count)
    ]
    for answered in admin.create_acls(rules).values():
        answered.result(60)


def request_us(server: Server, security: Security) -> float:
    """Return the server's processor time for a small request that is checked."""
    context = ssl.create_default_context(cafile=str(security.certificate))
    topics = [MetadataRequestTopic(name=TOPIC)]
    frame = encode_request(ApiKey.METADATA, 9, 3, "bench", MetadataRequest(topics=topics))
    with connected(server, context, "alice") as connection:
        for _ in range(REQUESTS // 4):
            asked(connection, frame)
        begun = server.cpu_seconds()
        for _ in range(REQUESTS):
            asked(connection, frame)
        return 1e6 * (server.cpu_seconds() - begun) / REQUESTS


def main(arguments: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="bench security")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--libs", type=Path, help="the folder of Apache Kafka's jars")
    options = parser.parse_args(arguments)
    (ROOT / "build").mkdir(exist_ok=True)
    libraries = options.libs or find_kafka()
    results = Results()
    with tempfile.TemporaryDirectory() as folder:
        security = Security(Path(folder))
        for _ in range(options.rounds):
            servers: list[Server] = [SecuredMillstream(security)]
            if libraries is not None:
                servers.append(SecuredKafka(libraries, security))
            for server in servers:
                with server:
                    measure(server, security, results)
    print("\n".join(results.rows()))
    return 0
