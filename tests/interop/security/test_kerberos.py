"""Kerberos between nodes, of programs, and what a ticket gives no right to.

`test_every_mechanism` has each client with a right and a wrong key.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker.__main__ import main as tool
from broker.config.kerberos_config import KerberosConfig
from broker.security.gssapi_server import GssapiServer
from broker.security.kerberos_names import ShortNames
from broker.server.login.kerberos import KerberosAcceptor
from common.credentials.errors import AuthenticationFailed
from common.credentials.gssapi_client import GssapiClient
from common.credentials.jaas import KERBEROS_MODULE
from common.credentials.kerberos import KerberosLogin
from common.credentials.kerberos_context import new_initiator
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from common.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from millstream.processes.settings_files import (
    PLAIN_MODULE,
    login_text,
    properties_text,
    write_private,
)
from millstream.testing import LocalCluster
from tests.lib.kerberos import REALM, Realm, running_realm
from tests.lib.pipeline_processes import Program
from tests.lib.raw_kafka import RawConnection
from tests.lib.secured_broker import AUTHORIZER
from tests.lib.waiting import until

pytestmark = pytest.mark.interop
NODE = f"kafka/127.0.0.1@{REALM}"
ADMIN = login_text(PLAIN_MODULE, username="admin", password="a-secret", user_admin="a-secret")


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with running_realm(tmp_path_factory.mktemp("realm")) as made:
        for principal in ("kafka/127.0.0.1", "alice", "bob"):
            made.add(principal)
        yield made


@pytest.fixture(scope="module")
def cluster(realm: Realm) -> Iterator[LocalCluster]:
    """Nodes that know each other, brokers and controllers, by Kerberos alone."""
    login = login_text(
        KERBEROS_MODULE,
        useKeyTab="true",
        keyTab=str(realm.folder / "kafka_127.0.0.1.keytab"),
        principal=NODE,
    )
    settings = {
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "listener.name.plaintext.sasl.enabled.mechanisms": "GSSAPI,PLAIN",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.mechanism.controller.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.plaintext.gssapi.sasl.jaas.config": login,
        "listener.name.controller.gssapi.sasl.jaas.config": login,
        "listener.name.plaintext.plain.sasl.jaas.config": ADMIN,
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin;User:kafka;User:alice",
    }
    with pytest.MonkeyPatch.context() as patched:
        for name, value in realm.environment.items():
            patched.setenv(name, value)
        with LocalCluster(brokers=3, has_links=False, **settings) as made:
            yield made


def of_admin(cluster: LocalCluster) -> dict[str, str]:
    return {
        "bootstrap.servers": cluster.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": "a-secret",
    }


def client_file(realm: Realm, folder: Path, user: str) -> str:
    """Write a program's settings with the key of a user."""
    own = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": login_text(
            KERBEROS_MODULE,
            useKeyTab="true",
            keyTab=str(realm.folder / f"{user.replace('/', '_')}.keytab"),
            principal=f"{user}@{REALM}",
        ),
    }
    file = folder / f"{user.replace('/', '_')}.properties"
    write_private(file, properties_text(own))
    return str(file)


def test_nodes_know_each_other_by_their_tickets(cluster: LocalCluster) -> None:
    """Records are replicated, a controller is killed, and transactions ask their coordinator."""
    settings = of_admin(cluster)
    admin = AdminClient(settings)
    admin.create_topics([NewTopic("orders", 3, 3, config={"min.insync.replicas": "3"})])[
        "orders"
    ].result(30)
    producer = Producer({**settings, "transactional.id": "t"})
    producer.init_transactions(30)
    for killed in (None, 1):
        if killed is not None:
            cluster.kill(killed)
            cluster.start(killed)
        producer.begin_transaction()
        for _ in range(30):
            producer.produce("orders", b"x")
        producer.commit_transaction(60)


def test_a_ticket_is_no_right(
    cluster: LocalCluster, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in realm.environment.items():
        monkeypatch.setenv(name, value)
    where = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config")
    created = ("--create", "--topic")
    assert tool(["topics", *where, client_file(realm, tmp_path, "alice"), *created, "a"]) == 0
    assert tool(["topics", *where, client_file(realm, tmp_path, "bob"), *created, "b"]) != 0
    log = "".join(cluster.log(node_id) for node_id in cluster.node_ids)
    assert "denied principal='User:bob'" in log


def test_a_program_takes_its_key_from_its_file(
    cluster: LocalCluster, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The registry's clients are of aiokafka."""
    for name, value in realm.environment.items():
        monkeypatch.setenv(name, value)
    log = tmp_path / "registry.log"
    told = ("--bootstrap-servers", cluster.bootstrap_servers, "--command-config")
    program = Program(log, "schemas.registry", *told, client_file(realm, tmp_path, "alice"))
    try:
        assert program.wait_ready().startswith("http")
    finally:
        program.end(kill=True)
    assert "_schemas" in AdminClient(of_admin(cluster)).list_topics(timeout=20).topics


SENDS = """
import asyncio, sys, time
from aiokafka import AIOKafkaProducer
from common.credentials.access import kafka_access

async def send():
    access = kafka_access(sys.argv[1], sys.argv[2], needs_librdkafka=False)
    begun = time.monotonic()
    while time.monotonic() - begun < 5:
        async with AIOKafkaProducer(**access.aiokafka()) as producer:
            await producer.send_and_wait("short", b"x")
        await asyncio.sleep(0.2)

asyncio.run(send())
"""


def test_a_program_renews_its_ticket(cluster: LocalCluster, realm: Realm, tmp_path: Path) -> None:
    """Tickets of this user last for two seconds; each new connection needs one that is valid."""
    realm.add("alice/short")
    realm.run("kadmin.local", "-q", f'modprinc -maxlife "2 seconds" alice/short@{REALM}')
    file = client_file(realm, tmp_path, "alice/short")
    ended = subprocess.run(
        [sys.executable, "-c", SENDS, cluster.bootstrap_servers, file],
        env={**os.environ, **realm.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    issued = (realm.folder / "kdc.log").read_text()
    assert len(re.findall(r"AS_REQ .*ISSUE.* alice/short@", issued)) > 1, issued


@pytest.mark.parametrize("wrong", ["realm", "key", "nobody"])
def test_a_program_without_a_ticket_says_so_at_the_start(
    cluster: LocalCluster, realm: Realm, tmp_path: Path, wrong: str
) -> None:
    """The realm is another, the key is of another principal, or no such principal exists."""
    principal = {"realm": "alice@OTHER.EXAMPLE", "key": f"bob@{REALM}", "nobody": f"eve@{REALM}"}
    file = Path(client_file(realm, tmp_path, "alice"))
    file.write_text(file.read_text().replace(f"alice@{REALM}", principal[wrong]))
    for name, *told in (
        ("topics", "--bootstrap-server", cluster.bootstrap_servers, "--list"),
        ("registry", "--bootstrap-servers", cluster.bootstrap_servers),
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "millstream", name, *told, "--command-config", str(file)],
            env={**os.environ, **realm.environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ended.returncode != 0
        assert "Traceback" not in ended.stderr, ended.stderr
        assert principal[wrong] in ended.stderr + ended.stdout, ended


def test_a_ticket_for_another_key_is_refused_and_nothing_else_happens(
    realm: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of the service was changed, and the broker has the former one."""
    for name, value in realm.environment.items():
        monkeypatch.setenv(name, value)
    keytab = realm.add("kafka/localhost")
    realm.run("kadmin.local", "-q", f"cpw -randkey kafka/localhost@{REALM}")
    names = ShortNames(["DEFAULT"], REALM)
    config = KerberosConfig(f"kafka/localhost@{REALM}", str(keytab), names)
    login = KerberosLogin("kafka", f"alice@{REALM}", str(realm.folder / "alice.keytab"))
    ticket = GssapiClient(new_initiator(login, "localhost")).first()
    for token in (ticket, ticket[:-1], ticket[:40], b"", b"\x60\x00"):
        server = GssapiServer(KerberosAcceptor(config).new_context(), names.of)
        with pytest.raises(AuthenticationFailed):
            server.receive(token)
        assert not server.is_complete


class NoTicket:
    """A client with a token of its own making."""

    def first(self) -> bytes:
        return b"no ticket"

    def receive(self, answer: bytes) -> bytes | None:
        raise AssertionError(answer)


@pytest.mark.parametrize("user", ["", f"alice@{REALM}"], ids=["no-ticket", "no-such-layer"])
def test_the_log_names_the_principal_of_a_failed_login(
    cluster: LocalCluster, realm: Realm, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    """As soon as it is proved: the second client has a ticket, and demands what is not offered."""
    for name, value in realm.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("common.credentials.gssapi_client.CHOICE", b"\x02\0\0\0")
    login = KerberosLogin("kafka", user, str(realm.folder / "alice.keytab"))
    client = GssapiClient(new_initiator(login, "127.0.0.1")) if user else NoTicket()
    before = len(cluster.log(1))
    with RawConnection(cluster.address(1)) as connection:
        connection.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="GSSAPI"))
        token: bytes | None = client.first()
        while token is not None:
            request = SaslAuthenticateRequest(auth_bytes=token)
            answer = connection.ask(ApiKey.SASL_AUTHENTICATE, 1, request)
            assert isinstance(answer, SaslAuthenticateResponse)
            token = None if answer.error_code else client.receive(bytes(answer.auth_bytes))
    wanted = f"listener=PLAINTEXT mechanism=GSSAPI user={user!r} reason="

    def lines() -> list[str]:
        found = cluster.log(1)[before:].splitlines()
        return [line for line in found if "authentication failed" in line]

    until(lambda: len(lines()) == 1, shown=lambda: cluster.log(1)[before:])
    assert wanted in lines()[0]
