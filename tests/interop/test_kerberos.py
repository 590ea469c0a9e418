"""Stock clients with Kerberos tickets of a real KDC, and without."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka
import pytest
from aiokafka import AIOKafkaProducer

from millrace.security.jaas import KERBEROS_MODULE
from millrace.testing import LocalBroker
from tests.lib.apache_kafka import TOOLS, Tool, kafka_libs, run_tools
from tests.lib.kerberos import REALM, Realm, running_realm

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with running_realm(tmp_path_factory.mktemp("realm")) as made:
        yield made


@pytest.fixture
def environment(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> Realm:
    for name, value in realm.environment.items():
        monkeypatch.setenv(name, value)
    return realm


@pytest.fixture(scope="module")
def broker(realm: Realm) -> Iterator[LocalBroker]:
    keytab = realm.add("kafka/localhost")
    realm.add("alice")
    realm.add("bob")
    principal = f"kafka/localhost@{REALM}"
    jaas = f'{KERBEROS_MODULE} required useKeyTab=true keyTab="{keytab}" principal="{principal}";'
    with pytest.MonkeyPatch.context() as patched:
        for name, value in realm.environment.items():
            patched.setenv(name, value)
        with LocalBroker(
            security="sasl_plaintext",
            sasl_enabled_mechanisms="PLAIN,GSSAPI",
            sasl_jaas_config=jaas,
            sasl_kerberos_service_name="kafka",
            authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            super_users="User:admin;User:alice",
        ) as made:
            yield made


def logged_in(realm: Realm, user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the key of a user in this process, as kinit would."""
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.folder / f"{user}.keytab"))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{realm.folder}/{user}.cache")


def address(broker: LocalBroker) -> str:
    return f"localhost:{broker.bootstrap_servers.rpartition(':')[2]}"


async def aiokafka_sends(broker: LocalBroker) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=address(broker),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_kerberos_service_name="kafka",
        sasl_kerberos_domain_name="localhost",
    )
    try:
        await producer.start()
        await producer.send_and_wait("a", b"x")
    finally:
        await producer.stop()


def kafka_python_sends(broker: LocalBroker) -> Any:
    with kafka.KafkaProducer(
        bootstrap_servers=address(broker),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_kerberos_service_name="kafka",
        sasl_kerberos_domain_name="localhost",
        bootstrap_timeout_ms=5_000,
    ) as producer:
        return producer.send("k", b"x").get(10)


@pytest.mark.parametrize("client", ["aiokafka", "kafka-python"])
def test_python_clients(
    client: str, broker: LocalBroker, environment: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sends() -> None:
        if client == "aiokafka":
            asyncio.run(aiokafka_sends(broker))
        else:
            kafka_python_sends(broker)

    logged_in(environment, "alice", monkeypatch)
    sends()
    logged_in(environment, "bob", monkeypatch)
    with pytest.raises(Exception, match=r"(?i)authoriz|metadata"):
        sends()
    assert "denied principal='User:bob'" in broker.log()


def test_java(broker: LocalBroker, realm: Realm, tmp_path: Path) -> None:
    tools = []
    for name, keytab in (("alice", realm.folder / "alice.keytab"), ("none", tmp_path / "none")):
        file = tmp_path / f"{name}.properties"
        file.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\n"
            "sasl.kerberos.service.name=kafka\n"
            f"sasl.jaas.config={KERBEROS_MODULE} required useKeyTab=true storeKey=true "
            f'keyTab="{keytab}" principal="alice@{REALM}";\n'
        )
        where = ("--bootstrap-server", address(broker), "--command-config", str(file))
        tools.append(Tool(f"{TOOLS}.TopicCommand", (*where, "--create", "--topic", name)))
    option = f"-Djava.security.krb5.conf={realm.configuration}"
    good, bad = run_tools(kafka_libs(), tools, option)
    assert good.status == 0, good
    assert bad.status != 0
