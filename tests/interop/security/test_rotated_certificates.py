"""The certificates of a cluster, changed again and again while clients and nodes use them.

Brokers speak SASL_SSL with each other, and mutual TLS with a controller that is no broker.
"""

import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.__main__ import main as tool
from common.credentials.access import KafkaAccess
from millstream.processes.settings_files import PLAIN_MODULE, login_text, properties_text
from millstream.testing import LocalCluster
from millstream.testing.certificates import CertificateAuthority
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

ROUNDS = 10
BOTH = ("plaintext", "controller")
LOGIN = {"username": "node", "password": "node-secret"}


class Rotated:
    """A cluster, and the certificates of its nodes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = CertificateAuthority(folder / "authority")
        jaas = login_text(PLAIN_MODULE, **LOGIN, user_node="node-secret", user_admin="a-secret")
        settings = {
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.plaintext.plain.sasl.jaas.config": jaas,
            "ssl.keystore.location": str(self._authority.issue("node").keystore),
            "ssl.truststore.location": str(self._authority.certificate),
            "listener.name.controller.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:node",
        }
        self.cluster = LocalCluster(brokers=3, controllers=1, has_links=False, **settings)
        self.properties = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": login_text(PLAIN_MODULE, username="admin", password="a-secret"),
            "ssl.truststore.location": str(self._authority.certificate),
        }

    def client(self) -> dict[str, Any]:
        access = KafkaAccess(self.cluster.bootstrap_servers, self.properties)
        return dict(access.librdkafka())

    def new_keystore(self, name: str) -> str:
        """Issue another certificate `CN=node`, in a folder of its own."""
        folder = self._folder / name
        folder.mkdir()
        for file in ("ca.pem", "ca.key"):
            (folder / file).write_bytes((self._authority.certificate.parent / file).read_bytes())
        return str(CertificateAuthority(folder).issue("node").keystore)

    def alter(self, node_id: int, settings: dict[str, str], *where: str) -> None:
        file = self._controller_file() if where else self._client_file()
        given = ",".join(f"{name}={value}" for name, value in settings.items())
        entity = ("--entity-type", "brokers", "--entity-name", str(node_id))
        place = where or ("--bootstrap-server", self.cluster.address(node_id))
        options = ("--command-config", str(file))
        assert tool(["configs", *place, *options, *entity, "--alter", "--add-config", given]) == 0

    def _client_file(self) -> Path:
        file = self._folder / "admin.properties"
        file.write_text(properties_text(self.properties))
        return file

    def _controller_file(self) -> Path:
        """Return the settings of a client of controllers, which know it by its certificate."""
        file = self._folder / "controller.properties"
        own = {
            "security.protocol": "SSL",
            "ssl.keystore.location": str(self._authority.certificate.parent / "node.pem"),
            "ssl.truststore.location": str(self._authority.certificate),
        }
        file.write_text(properties_text(own))
        return file


class Load:
    """A client that writes number after number, and another one that reads them."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self.acknowledged: list[bytes] = []
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        begin = 0
        while not self._stop.wait(0.005):
            # A new producer from time to time: a new connection takes the new certificate.
            producer = Producer({**self._settings, "acks": "all", "enable.idempotence": True})
            for number in range(begin, begin + 20):
                value = b"%d" % number
                producer.produce("t", value, partition=0, on_delivery=self._on_delivery)
                producer.flush(60)
            begin += 20

    def _on_delivery(self, error: object, message: Any) -> None:
        if error is None:
            self.acknowledged.append(message.value())
        else:
            self.failures.append(str(error))

    def goes_on(self) -> None:
        after = len(self.acknowledged) + 30
        until(lambda: len(self.acknowledged) >= after or bool(self.failures))
        assert self.failures == []

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture
def rotated(tmp_path: Path) -> Iterator[Rotated]:
    made = Rotated(tmp_path)
    with made.cluster:
        yield made


def serials(address: str) -> str:
    host, _, port = address.rpartition(":")
    return ssl.get_server_certificate((host, int(port)))


def test_ten_rotations_of_every_node_lose_nothing(rotated: Rotated) -> None:
    cluster = rotated.cluster
    load = Load(rotated.client())
    load.goes_on()
    shown = {node_id: {serials(cluster.address(node_id))} for node_id in cluster.broker_ids}
    try:
        for number in range(ROUNDS):
            for node_id in cluster.broker_ids:
                keystore = rotated.new_keystore(f"{number}-{node_id}")
                names = (f"listener.name.{each}.ssl.keystore.location" for each in BOTH)
                rotated.alter(node_id, dict.fromkeys(names, keystore))
                shown[node_id].add(serials(cluster.address(node_id)))
            load.goes_on()
        cluster.kill(2)
        cluster.start(2)
        load.goes_on()
    finally:
        load.stop()
    assert {node_id: len(found) for node_id, found in shown.items()} == dict.fromkeys(
        cluster.broker_ids, ROUNDS + 1
    )
    consumer = Consumer({**rotated.client(), "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 0)])
    read: list[bytes] = []

    def is_complete() -> bool:
        messages = consumer.consume(10_000, 1.0)
        read.extend(each.value() or b"" for each in messages if not each.error())
        return len(read) >= len(load.acknowledged)

    until(is_complete)
    consumer.close()
    assert read == load.acknowledged
    logs = "".join(cluster.log(node_id) for node_id in cluster.node_ids)
    assert "cannot be used" not in logs
    assert "authentication failed" not in logs
    assert "Traceback" not in logs


def test_a_controller_takes_its_new_certificate_too(rotated: Rotated) -> None:
    cluster = rotated.cluster
    (controller,) = cluster.controller_ids
    port = int(cluster.node(controller).settings["listeners"].rpartition(":")[2])
    before = serials(f"127.0.0.1:{port}")
    setting = "listener.name.controller.ssl.keystore.location"
    rotated.alter(
        controller,
        {setting: rotated.new_keystore("controller")},
        *("--bootstrap-controller", f"127.0.0.1:{port}"),
    )
    until(lambda: serials(f"127.0.0.1:{port}") != before)
    after = serials(f"127.0.0.1:{port}")
    cluster.stop(controller)
    cluster.start(controller)
    until(lambda: serials(f"127.0.0.1:{port}") == after)
    load = Load(rotated.client())
    load.goes_on()
    load.stop()
