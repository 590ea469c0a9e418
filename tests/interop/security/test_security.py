"""Stock clients and Apache's tools against brokers with TLS, SASL and an authorizer.

`test_every_mechanism` has each client by each mechanism.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from broker.__main__ import main as tool
from millstream.testing import LocalBroker, LocalCluster
from millstream.testing.certificates import CertificateAuthority
from millstream.testing.security import PASSWORD, USER, Security
from tests.lib.apache_kafka import Tool, kafka_libs, run_tools

pytestmark = pytest.mark.interop

KINDS: list[Security] = ["ssl", "sasl_plaintext", "sasl_ssl"]
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
VALUES = [b"%d" % number * 300 for number in range(200)]
LARGE = b"x" * 900_000
"""Larger than what a socket takes at once, and sent from the file."""


@pytest.fixture(scope="module", params=KINDS)
def secured(request: pytest.FixtureRequest) -> Iterator[LocalBroker]:
    with LocalBroker(security=request.param) as broker:
        yield broker


def test_confluent_kafka(secured: LocalBroker) -> None:
    settings = secured.client_settings("confluent-kafka")
    written, read = [*VALUES, LARGE], []
    producer = Producer(settings)
    failures: list[Any] = []
    for value in written:
        producer.produce("c", value, on_delivery=lambda error, _: failures.append(error))
    producer.flush(30)
    assert failures == [None] * len(written)
    consumer = Consumer({**settings, "group.id": "c", "auto.offset.reset": "earliest"})
    consumer.subscribe(["c"])
    deadline = time.monotonic() + 30
    while len(read) < len(written) and time.monotonic() < deadline:
        read += [message.value() for message in consumer.consume(100, 0.2) if not message.error()]
    consumer.close()
    assert read == written


def test_aiokafka(secured: LocalBroker) -> None:
    async def run() -> list[bytes]:
        settings = secured.client_settings("aiokafka")
        async with AIOKafkaProducer(**settings) as producer:
            for value in VALUES:
                await producer.send("a", value)
        consumer = AIOKafkaConsumer("a", **settings, auto_offset_reset="earliest", group_id="a")
        async with consumer, asyncio.timeout(30):
            return [(await consumer.getone()).value for _ in VALUES]

    assert asyncio.run(run()) == VALUES


def test_transactions(secured: LocalBroker) -> None:
    """The broker asks itself, over its own listener, whether a batch belongs to a transaction."""

    async def run() -> list[int]:
        settings = secured.client_settings("aiokafka")
        producer = AIOKafkaProducer(**settings, transactional_id="t")
        async with producer, asyncio.timeout(30):
            offsets = []
            for value in VALUES[:3]:
                async with producer.transaction():
                    offsets.append((await producer.send_and_wait("t", value)).offset)
        return offsets

    assert asyncio.run(run()) == [0, 2, 4]


def test_kafka_python(secured: LocalBroker) -> None:
    settings = secured.client_settings("kafka-python")
    producer = kafka.KafkaProducer(**settings)
    for value in VALUES:
        producer.send("k", value)
    producer.flush(30)
    producer.close()
    consumer = kafka.KafkaConsumer("k", **settings, auto_offset_reset="earliest")
    read: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(read) < len(VALUES) and time.monotonic() < deadline:
        for messages in consumer.poll(500).values():
            read += [message.value for message in messages]
    consumer.close()
    assert read == VALUES


def test_a_wrong_password_is_told_after_the_delay() -> None:
    delay_ms = 400
    setting = {"connection.failed.authentication.delay.ms": delay_ms}
    with LocalBroker(security="sasl_plaintext", **setting) as broker:
        settings = {**broker.client_settings(), "sasl.password": "another", "log_level": 0}
        errors: list[str] = []
        client = AdminClient({**settings, "error_cb": lambda error: errors.append(error.name())})
        begun = time.monotonic()
        with pytest.raises(KafkaException):
            client.list_topics(timeout=3)
        client.poll(0)
        assert "_AUTHENTICATION" in errors
        assert time.monotonic() - begun >= delay_ms / 1000
        assert "another" not in broker.log()


def test_a_client_of_another_authority_is_not_let_in(tmp_path: Path) -> None:
    with LocalBroker(security="ssl", **{"ssl.client.auth": "required"}) as broker:
        settings = {**broker.client_settings(), "log_level": 0}
        stranger = CertificateAuthority(tmp_path).issue("alice")
        own = {"ssl.certificate.location": stranger.certificate, "ssl.key.location": stranger.key}
        for more in ({}, {name: str(path) for name, path in own.items()}):
            with pytest.raises(KafkaException):
                AdminClient({**settings, **more}).list_topics(timeout=1)


def test_a_certificate_with_a_mail_address_is_the_principal_that_kafka_makes_of_it(
    tmp_path: Path,
) -> None:
    principal = "User:1.2.840.113549.1.9.1=#16056140622e63,CN=alice"
    settings = {
        "ssl.client.auth": "required",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": f"{principal};User:CN=broker",
    }
    with LocalBroker(security="ssl", **settings) as broker:
        folder = Path(broker.client_settings()["ssl.ca.location"]).parent
        authority = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
        authority_key: Any = load_pem_private_key((folder / "ca.key").read_bytes(), None)
        key = ec.generate_private_key(ec.SECP256R1())
        names = [
            x509.NameAttribute(NameOID.COMMON_NAME, "alice"),
            x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@b.c"),
        ]
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(names))
            .issuer_name(authority.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(hours=1))
            .sign(authority_key, hashes.SHA256())
        )
        (tmp_path / "alice.crt").write_bytes(certificate.public_bytes(Encoding.PEM))
        (tmp_path / "alice.key").write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        )
        own = {
            "ssl.certificate.location": str(tmp_path / "alice.crt"),
            "ssl.key.location": str(tmp_path / "alice.key"),
        }
        admin = AdminClient({**broker.client_settings(), **own})
        admin.create_topics([NewTopic("hers", 1)])["hers"].result(20)


# --- authorisation ---


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalBroker, Path]]:
    """A broker with an authorizer, and the settings of its administrator as a file."""
    with LocalBroker(
        security="sasl_ssl",
        authorizer_class_name=STANDARD_AUTHORIZER,
        super_users=f"User:{USER}",
    ) as broker:
        file = tmp_path_factory.mktemp("admin") / "admin.properties"
        ca_file = broker.client_settings()["ssl.ca.location"]
        file.write_text(
            "security.protocol=SASL_SSL\n"
            "sasl.mechanism=PLAIN\n"
            "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{USER}" password="{PASSWORD}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={ca_file}\n"
        )
        yield broker, file


def run_tool(guarded: tuple[LocalBroker, Path], name: str, *arguments: str) -> None:
    broker, file = guarded
    where = ["--bootstrap-server", broker.bootstrap_servers, "--command-config", str(file)]
    assert tool([name, *where, *arguments]) == 0


def of_user(broker: LocalBroker, user: str, **more: str) -> dict[str, Any]:
    return {
        **broker.client_settings(),
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
        **more,
    }


def add_user(guarded: tuple[LocalBroker, Path], user: str) -> None:
    credential = f"SCRAM-SHA-256=[password={user}-secret]"
    entity = ("--entity-type", "users", "--entity-name", user)
    run_tool(guarded, "configs", "--alter", *entity, "--add-config", credential)


def produced(settings: dict[str, Any], topic: str) -> str:
    """Return how a record ended: `ok`, or the error's name."""
    outcome: list[str] = []
    producer = Producer({**settings, "message.timeout.ms": 10_000})
    producer.produce(
        topic, b"v", on_delivery=lambda error, _: outcome.append(error.name() if error else "ok")
    )
    producer.flush(15)
    return outcome[0]


def test_a_user_may_do_what_its_rules_say_and_no_more(
    guarded: tuple[LocalBroker, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    broker, _ = guarded
    admin = AdminClient(broker.client_settings())
    admin.create_topics([NewTopic("own", 1), NewTopic("other", 1)])["own"].result(20)
    add_user(guarded, "alice")
    alice = of_user(broker, "alice")
    assert produced(alice, "own") == "TOPIC_AUTHORIZATION_FAILED"
    who = ("--allow-principal", "User:alice")
    run_tool(guarded, "acls", "--add", *who, "--producer", "--topic", "own")
    assert produced(alice, "own") == "ok"
    assert produced(alice, "other") == "TOPIC_AUTHORIZATION_FAILED"
    her_admin = AdminClient(alice)
    assert set(her_admin.list_topics(timeout=60).topics) == {"own"}
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        her_admin.delete_topics(["own"])["own"].result(60)
    run_tool(guarded, "acls", "--remove", "--force", *who, "--operation", "Write", "--topic", "own")
    assert produced(alice, "own") == "TOPIC_AUTHORIZATION_FAILED"
    run_tool(guarded, "acls", "--list", "--topic", "own")
    out = capsys.readouterr().out
    assert "(principal=User:alice, host=*, operation=DESCRIBE, permissionType=ALLOW)" in out
    assert "alice-secret" not in broker.log()
    assert PASSWORD not in broker.log()
    assert "denied principal='User:alice'" in broker.log()


def test_a_consumer_needs_its_group_too(guarded: tuple[LocalBroker, Path]) -> None:
    broker, _ = guarded
    add_user(guarded, "bob")
    who = ("--allow-principal", "User:bob")
    run_tool(guarded, "acls", "--add", *who, "--producer", "--topic", "bobs")
    run_tool(guarded, "acls", "--add", *who, "--operation", "Read", "--topic", "bobs")
    bob = of_user(broker, "bob")
    assert produced(bob, "bobs") == "ok"

    def consumed(group: str) -> tuple[int, set[str]]:
        settings = {**bob, "group.id": group, "auto.offset.reset": "earliest"}
        consumer = Consumer(settings)
        consumer.subscribe(["bobs"])
        count, errors = 0, set()
        deadline = time.monotonic() + 10
        while not (count or errors) and time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None and message.error():
                errors.add(message.error().name())
            elif message is not None:
                count += 1
        consumer.close()
        return count, errors

    assert consumed("bobs-group") == (0, {"GROUP_AUTHORIZATION_FAILED"})
    prefixed = ("--resource-pattern-type", "prefixed")
    run_tool(guarded, "acls", "--add", *who, "--operation", "Read", "--group", "bobs-", *prefixed)
    assert consumed("bobs-group") == (1, set())


def test_apaches_own_tools(guarded: tuple[LocalBroker, Path]) -> None:
    broker, file = guarded
    where = ("--bootstrap-server", broker.bootstrap_servers, "--command-config", str(file))
    acls, configs = "org.apache.kafka.tools.AclCommand", "kafka.admin.ConfigCommand"
    user = ("--entity-type", "users", "--entity-name", "carol")
    rule = ("--allow-principal", "User:carol", "--operation", "Read", "--topic", "t-")
    prefixed = ("--resource-pattern-type", "prefixed")
    told = run_tools(
        kafka_libs(),
        [
            Tool(acls, (*where, "--add", *rule, *prefixed)),
            Tool(acls, (*where, "--list", "--principal", "User:carol")),
            Tool(acls, (*where, "--remove", "--force", *rule, *prefixed)),
            Tool(acls, (*where, "--list", "--principal", "User:carol")),
            Tool(
                configs,
                (*where, "--alter", *user, "--add-config", "SCRAM-SHA-512=[password=c]"),
            ),
            Tool(configs, (*where, "--describe", *user)),
            Tool(configs, (*where, "--alter", *user, "--delete-config", "SCRAM-SHA-512")),
        ],
    )
    assert [result.status for result in told] == [0] * len(told), told
    assert "ResourcePattern(resourceType=TOPIC, name=t-, patternType=PREFIXED)" in told[1].output
    assert "operation=READ, permissionType=ALLOW" in told[1].output
    assert "operation=READ" not in told[3].output
    assert "SCRAM-SHA-512=iterations=4096" in told[5].output


# --- a cluster ---


def test_a_cluster_whose_nodes_know_each_other_by_certificate_and_password(tmp_path: Path) -> None:
    """SASL_SSL between brokers, mutual TLS to controllers; a broker is killed in between."""
    authority = CertificateAuthority(tmp_path)
    keystore = authority.issue("node").keystore
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="node" password="node-secret" user_node="node-secret" user_admin="a-secret";'
    )
    settings = {
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": jaas,
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.location": str(authority.certificate),
        "listener.name.controller.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:admin;User:node",
    }
    with LocalCluster(brokers=3, has_links=False, **settings) as cluster:
        client = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "a-secret",
            "ssl.ca.location": str(authority.certificate),
            "log_level": 0,
        }
        admin = AdminClient(client)
        admin.create_topics([NewTopic("orders", 3, 3)])["orders"].result(30)
        producer = Producer({**client, "transactional.id": "t"})
        producer.init_transactions(30)
        for killed in (None, 1):
            if killed is not None:
                cluster.kill(killed)
            producer.begin_transaction()
            for value in VALUES:
                producer.produce("orders", value)
            producer.commit_transaction(60)
        consumer = Consumer({**client, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        read: list[bytes] = []
        deadline = time.monotonic() + 60
        while len(read) < 2 * len(VALUES) and time.monotonic() < deadline:
            read += [each.value() for each in consumer.consume(200, 0.5) if not each.error()]
        consumer.close()
        assert sorted(read) == sorted(2 * VALUES)
        # A stranger's certificate, or none, opens no controller listener.
        port = int(cluster.node(2).settings["listeners"].rpartition(":")[2])
        context = ssl.create_default_context(cafile=str(authority.certificate))
        with pytest.raises(ssl.SSLError), _connected(context, port) as stranger:
            stranger.recv(1)
        assert "secret" not in "".join(cluster.log(node_id) for node_id in cluster.node_ids)


def _connected(context: ssl.SSLContext, port: int) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", port), timeout=10)
    return context.wrap_socket(plain, server_hostname="localhost")
