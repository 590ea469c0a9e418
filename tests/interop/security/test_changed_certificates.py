"""Keys and certificates that change while a broker runs, by dynamic settings: real clients."""

import asyncio
import hashlib
import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from broker.__main__ import main as tool
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.metadata import MetadataRequest
from common.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from common.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from millstream.testing import LocalBroker
from millstream.testing.certificates import LOOPBACK, CertificateAuthority
from tests.lib.apache_kafka import Tool, kafka_libs, run_tools
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop

PREFIX = "listener.name.sasl_ssl."
KEYSTORE = f"{PREFIX}ssl.keystore.location"
SECRET = "the-password-of-the-key"


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(security="sasl_ssl", node_id=1) as started:
        yield started


class Issuer:
    """Issues certificates of the broker's authority, each in a folder of its own."""

    def __init__(self, broker: LocalBroker, folder: Path) -> None:
        self._certificates = Path(broker.client_settings()["ssl.ca.location"]).parent
        self._folder = folder
        self._count = 0

    def issue(self, name: str = "broker", *hosts: str) -> Path:
        self._count += 1
        folder = self._folder / f"issued-{self._count}"
        shutil.copytree(self._certificates, folder)
        return CertificateAuthority(folder).issue(name, hosts or LOOPBACK).keystore


@pytest.fixture
def issuer(broker: LocalBroker, tmp_path: Path) -> Issuer:
    return Issuer(broker, tmp_path)


def shown(broker: LocalBroker) -> str:
    """Return the fingerprint of the certificate that a new connection is shown."""
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return fingerprint(ssl.get_server_certificate((host, int(port))))


def fingerprint(pem: str) -> str:
    own = pem[pem.index("-----BEGIN CERTIFICATE-----") :].partition("-----END CERTIFICATE-----")
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(own[0] + own[1])).hexdigest()


def of(keystore: Path) -> str:
    return fingerprint(keystore.read_text())


class Configs:
    """Our tool on the settings of the broker."""

    def __init__(self, broker: LocalBroker, capsys: pytest.CaptureFixture[str]) -> None:
        self._where = ("--bootstrap-server", broker.bootstrap_servers)
        self._file = ("--command-config", broker.client_file())
        self._capsys = capsys

    def __call__(self, *arguments: str, status: int = 0, entity: str = "1") -> str:
        self._capsys.readouterr()
        named = ("--entity-default",) if entity == "" else ("--entity-name", entity)
        whose = ("--entity-type", "brokers", *named)
        found = tool(["configs", *self._where, *self._file, *whose, *arguments])
        told = self._capsys.readouterr()
        assert found == status, told
        return told.out + told.err

    def add(self, *settings: str, status: int = 0, entity: str = "1") -> str:
        return self("--alter", "--add-config", ",".join(settings), status=status, entity=entity)


@pytest.fixture
def configs(broker: LocalBroker, capsys: pytest.CaptureFixture[str]) -> Configs:
    return Configs(broker, capsys)


def authenticated(broker: LocalBroker) -> RawConnection:
    connection = RawConnection(broker.bootstrap_servers)
    context: ssl.SSLContext = broker.client_settings("aiokafka")["ssl_context"]
    connection.socket = context.wrap_socket(connection.socket, server_hostname="localhost")
    connection.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    login = SaslAuthenticateRequest(auth_bytes=b"\0admin\0admin-secret")
    connection.ask(ApiKey.SASL_AUTHENTICATE, 1, login)
    return connection


def produce_with_every_client(broker: LocalBroker) -> None:
    failures: list[Any] = []
    producer = Producer(broker.client_settings("confluent-kafka"))
    producer.produce("t", b"confluent", on_delivery=lambda error, _: failures.append(error))
    producer.flush(30)
    assert failures == [None]
    other = kafka.KafkaProducer(**broker.client_settings("kafka-python"))
    other.send("t", b"kafka-python").get(30)
    other.close()

    async def run() -> None:
        async with AIOKafkaProducer(**broker.client_settings("aiokafka")) as third:
            await asyncio.wait_for(third.send_and_wait("t", b"aiokafka"), 30)

    asyncio.run(run())


def test_new_connections_take_the_new_certificate_and_old_ones_live_on(
    broker: LocalBroker, issuer: Issuer, configs: Configs
) -> None:
    old, new = shown(broker), issuer.issue()
    with authenticated(broker) as connection:
        configs.add(f"{KEYSTORE}={new}")
        assert shown(broker) == of(new) != old
        connection.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        produce_with_every_client(broker)
        # The same location again: the file is read again.
        shutil.copy(issuer.issue(), new)
        configs.add(f"{KEYSTORE}={new}")
        assert shown(broker) == of(new)
        connection.ask(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        broker.stop()
    broker.start()
    assert shown(broker) == of(new)
    produce_with_every_client(broker)
    described = configs("--describe")
    assert f"{KEYSTORE}={new} sensitive=false" in described
    configs("--alter", "--delete-config", KEYSTORE)
    assert shown(broker) == old
    produce_with_every_client(broker)


def test_what_cannot_be_used_is_refused_with_the_reason_and_changes_nothing(
    broker: LocalBroker, issuer: Issuer, configs: Configs, tmp_path: Path
) -> None:
    old, new = shown(broker), issuer.issue()
    damaged = tmp_path / "damaged.pem"
    for content, reason in (
        (None, "No such file"),
        (b"", "neither PEM"),
        (new.read_bytes()[:400], "no private key with its certificate"),
        (issuer.issue().read_bytes()[:241] + new.read_bytes()[241:], "no private key"),
        (issuer.issue("other").read_bytes(), "the subject 'CN=other', the old one 'CN=broker'"),
        (
            issuer.issue("broker", "elsewhere").read_bytes(),
            "lacks names of the old one: DNS:localh",
        ),
        (
            CertificateAuthority(tmp_path / "stranger").issue("broker").keystore.read_bytes(),
            "do not trust each other",
        ),
    ):
        damaged.unlink(missing_ok=True)
        if content is not None:
            damaged.write_bytes(content)
        told = configs.add(f"{KEYSTORE}={damaged}", status=1)
        assert reason in told, told
        assert "INVALID_REQUEST" in told
        assert shown(broker) == old
    for settings, entity, reason in (
        (f"ssl.keystore.location={new}", "1", "only per-listener using the listener prefix"),
        (f"{KEYSTORE}={new}", "", "broker id must be specified"),
        (f"listener.name.other.ssl.keystore.location={new}", "1", "no listener OTHER with TLS"),
        (f"{PREFIX}ssl.truststore.location={new}.none", "1", "No such file"),
    ):
        told = configs.add(settings, status=1, entity=entity)
        assert reason in told, told
        assert shown(broker) == old
    assert configs("--describe") == "Dynamic configs for broker 1 are:\n"
    produce_with_every_client(broker)


def test_a_password_is_told_to_nobody(
    broker: LocalBroker, issuer: Issuer, configs: Configs
) -> None:
    new = issuer.issue()
    pem = new.read_bytes()
    key: Any = load_pem_private_key(pem, None)
    encrypted = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(SECRET.encode())
    )
    new.write_bytes(encrypted + pem[pem.index(b"-----BEGIN CERTIFICATE-----") :])
    password = f"{PREFIX}ssl.key.password"
    told = configs.add(f"{KEYSTORE}={new}", f"{password}=wrong-{SECRET}", status=1)
    assert SECRET not in told
    configs.add(f"{KEYSTORE}={new}", f"{password}={SECRET}")
    assert shown(broker) == of(new)
    described = configs("--describe") + configs("--describe", "--all")
    assert f"{password}=null sensitive=true" in described
    assert SECRET not in described
    assert "admin-secret" not in described
    broker.stop()
    broker.start()
    assert shown(broker) == of(new)
    produce_with_every_client(broker)
    assert SECRET not in broker.log()


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated:DeprecationWarning")
def test_librdkafka_changes_them_too(broker: LocalBroker, issuer: Issuer) -> None:
    """It has both requests: the one that replaces all settings, and the one by operations."""
    admin = AdminClient(broker.client_settings())
    for replaces_all in (True, False):
        new, wrong = issuer.issue(), issuer.issue("other")
        for keystore, refusal in ((wrong, "the subject 'CN=other'"), (new, None)):
            if replaces_all:
                resource = ConfigResource("BROKER", "1", set_config={KEYSTORE: str(keystore)})
                (changed,) = admin.alter_configs([resource]).values()
            else:
                entry = ConfigEntry(
                    KEYSTORE, str(keystore), incremental_operation=AlterConfigOpType.SET
                )
                resource = ConfigResource("BROKER", "1", incremental_configs=[entry])
                (changed,) = admin.incremental_alter_configs([resource]).values()
            if refusal is None:
                changed.result(20)
            else:
                with pytest.raises(KafkaException, match=refusal):
                    changed.result(20)
        assert shown(broker) == of(new)


def test_apaches_own_tool(broker: LocalBroker, issuer: Issuer) -> None:
    old, new, wrong = shown(broker), issuer.issue(), issuer.issue("other")
    where = ("--bootstrap-server", broker.bootstrap_servers)
    whose = ("--entity-type", "brokers", "--entity-name", "1")
    given = (*where, "--command-config", broker.client_file(), *whose)
    alter, describe = (*given, "--alter", "--add-config"), (*given, "--describe")
    class_name = "kafka.admin.ConfigCommand"
    told = run_tools(
        kafka_libs(),
        [
            Tool(class_name, (*alter, f"{KEYSTORE}={wrong}")),
            Tool(class_name, (*alter, f"{KEYSTORE}={new},{PREFIX}ssl.key.password={SECRET}")),
            Tool(class_name, describe),
            Tool(class_name, (*alter, f"{KEYSTORE}={new}")),
        ],
    )
    assert [result.status for result in told] == [1, 0, 0, 0], told
    assert "the subject 'CN=other', the old one 'CN=broker'" in told[0].output + told[0].errors
    assert f"{KEYSTORE}={new} sensitive=false" in told[2].output
    assert f"{PREFIX}ssl.key.password=null sensitive=true" in told[2].output
    assert SECRET not in told[2].output
    assert shown(broker) == of(new) != old
