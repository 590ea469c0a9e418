"""Apache Kafka and ours in one quorum, over SASL_SSL and over mutual TLS, with an authorizer.

One founds the cluster and the other joins: its controller becomes a voter, and its broker serves
clients beside the other one. Then the founder leaves the voters, so that the joiner's controller
leads the founder's broker.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from common.credentials.access import KafkaAccess
from millstream.processes.settings_files import PLAIN_MODULE, login_text
from millstream.testing.certificates import CertificateAuthority
from tests.lib.apache_kafka import kafka_libs, run_tool
from tests.lib.apache_quorum import apache_node
from tests.lib.dynamic_quorum import DynamicQuorum
from tests.lib.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"
APACHE, OURS = 1, 2
BOTH = (APACHE, OURS)
PASSWORDS = {"user_node": "node-secret", "user_admin": "admin-secret"}
COUNT = 50


def node_settings(protocol: str, authority: CertificateAuthority, node_id: int) -> list[str]:
    jaas = login_text(PLAIN_MODULE, username="node", password="node-secret", **PASSWORDS)
    settings = {
        "listener.security.protocol.map": f"PLAINTEXT:{protocol},CONTROLLER:{protocol}",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue(f"node-{node_id}").keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node;User:node-1;User:node-2;User:admin",
        "default.replication.factor": "2",
        "offsets.topic.replication.factor": "2",
    }
    if protocol == "SSL":
        settings["ssl.client.auth"] = "required"
    else:
        settings |= {
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.plaintext.plain.sasl.jaas.config": jaas,
            "listener.name.controller.plain.sasl.jaas.config": jaas,
        }
    return [f"{name}={value}" for name, value in settings.items()]


def client_properties(protocol: str, authority: CertificateAuthority) -> dict[str, str]:
    settings = {
        "security.protocol": protocol,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
    }
    if protocol == "SSL":
        keystore = str(authority.issue("admin").keystore)
        return settings | {"ssl.keystore.type": "PEM", "ssl.keystore.location": keystore}
    login = login_text(PLAIN_MODULE, username="admin", password="admin-secret")
    return settings | {"sasl.mechanism": "PLAIN", "sasl.jaas.config": login}


@contextmanager
def secured_quorum(folder: Path, protocol: str) -> Iterator[DynamicQuorum]:
    authority = CertificateAuthority(folder / "certificates")
    with DynamicQuorum(folder, BOTH) as nodes:
        nodes.client_properties = client_properties(protocol, authority)
        for node_id in BOTH:
            own = node_settings(protocol, authority, node_id)
            nodes.configure(node_id, "broker,controller", *own)
        yield nodes


class Clients:
    """Clients of a quorum's brokers; each is given the address of one of them."""

    def __init__(self, nodes: DynamicQuorum) -> None:
        self._nodes = nodes
        self._produced: list[bytes] = []

    def settings(self, node_id: int) -> dict[str, Any]:
        bootstrap = self._nodes.bootstrap_server(node_id)
        return dict(KafkaAccess(bootstrap, self._nodes.client_properties).librdkafka())

    def brokers(self, node_id: int) -> set[int]:
        """Return the brokers that a node tells of, none while it is not up."""
        try:
            return set(AdminClient(self.settings(node_id)).list_topics(timeout=5).brokers)
        except KafkaException:
            return set()

    def create_topic(self, node_id: int) -> None:
        """Create a topic of two partitions; each broker leads one of them."""
        assigned = NewTopic("t", 2, replica_assignment=[[APACHE, OURS], [OURS, APACHE]])
        admin = AdminClient(self.settings(node_id))
        admin.create_topics([assigned])["t"].result(60)
        until(lambda: self._leaders(node_id) == {APACHE, OURS})

    def _leaders(self, node_id: int) -> set[int]:
        found = AdminClient(self.settings(node_id)).list_topics("t", timeout=30).topics["t"]
        return {each.leader for each in found.partitions.values() if len(each.isrs) == 2}

    def produce(self, node_id: int, name: str) -> None:
        """Produce to both partitions, so to both brokers."""
        failures: list[Any] = []
        producer = Producer({**self.settings(node_id), "acks": "all"})
        for number in range(COUNT):
            value = f"{name} {number}".encode()
            self._produced.append(value)
            producer.produce(
                "t",
                value,
                partition=number % 2,
                on_delivery=lambda error, _: failures.append(error),
            )
        producer.flush(60)
        assert failures == [None] * COUNT

    def read_all(self, node_id: int, group: str) -> None:
        """Read both partitions as a group, so that its offsets are committed too."""
        read: list[bytes] = []
        settings = {"group.id": group, "auto.offset.reset": "earliest", "session.timeout.ms": 45000}
        consumer = Consumer({**self.settings(node_id), **settings})
        consumer.subscribe(["t"])

        def is_complete() -> bool:
            messages = consumer.consume(1_000, 1.0)
            read.extend(each.value() for each in messages if not each.error())
            return len(read) >= len(self._produced)

        until(is_complete, shown=lambda: (len(read), len(self._produced)))
        consumer.commit(asynchronous=False)
        committed = consumer.committed([TopicPartition("t", each) for each in (0, 1)], 30)
        consumer.close()
        assert sorted(read) == sorted(self._produced)
        assert sum(each.offset for each in committed) == len(self._produced)


def voters(nodes: DynamicQuorum, node_id: int) -> list[int]:
    """Give the voters, none while a new leader is being elected."""
    try:
        return nodes.voters(nodes.bootstrap_server(node_id))
    except AssertionError:
        return []


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SSL"])
def test_our_node_joins_apache_kafka_and_then_leads_it(tmp_path: Path, protocol: str) -> None:
    libs = kafka_libs()
    with (
        secured_quorum(tmp_path, protocol) as nodes,
        apache_node(libs, nodes, APACHE, "--standalone"),
    ):
        clients = Clients(nodes)
        until(lambda: clients.brokers(APACHE) == {APACHE})
        nodes.format(OURS, "--no-initial-controllers")
        nodes.start(OURS)
        until(lambda: clients.brokers(APACHE) == clients.brokers(OURS) == set(BOTH))
        apache = nodes.bootstrap_server(APACHE)
        nodes.add(apache, OURS)
        until(lambda: voters(nodes, OURS) == [APACHE, OURS])
        clients.create_topic(OURS)
        for node_id in BOTH:
            clients.produce(node_id, f"through {node_id}")
            clients.read_all(node_id, f"group-{node_id}")
        nodes.remove(apache, APACHE)
        until(lambda: voters(nodes, OURS) == [OURS])
        for node_id in BOTH:
            clients.produce(node_id, f"through {node_id} after")
            clients.read_all(node_id, f"group-after-{node_id}")
        assert "authentication failed" not in nodes.log(OURS)
        assert "denied" not in nodes.log(OURS)


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SSL"])
def test_a_node_of_apache_kafka_joins_ours_and_then_leads_it(tmp_path: Path, protocol: str) -> None:
    libs = kafka_libs()
    with secured_quorum(tmp_path, protocol) as nodes:
        clients = Clients(nodes)
        nodes.format(OURS, "--standalone")
        nodes.start(OURS)
        ours = nodes.bootstrap_server(OURS)
        with apache_node(libs, nodes, APACHE, "--no-initial-controllers"):
            until(lambda: clients.brokers(APACHE) == clients.brokers(OURS) == set(BOTH))
            added = run_tool(
                *(libs, TOOL, "--bootstrap-server", ours, "--command-config"),
                *(str(nodes.controller_file(APACHE)), "add-controller"),
            )
            assert added.returncode == 0, added.stderr
            clients.create_topic(APACHE)
            for node_id in BOTH:
                clients.produce(node_id, f"through {node_id}")
                clients.read_all(node_id, f"group-{node_id}")
            removed = run_tool(
                *(libs, TOOL, "--bootstrap-server", nodes.bootstrap_server(APACHE)),
                *("--command-config", str(nodes.client_file()), "remove-controller"),
                *("-i", str(OURS), "-d", nodes.directory_id(OURS)),
            )
            assert removed.returncode == 0, removed.stderr
            until(lambda: voters(nodes, APACHE) == [APACHE])
            for node_id in BOTH:
                clients.produce(node_id, f"through {node_id} after")
                clients.read_all(node_id, f"group-after-{node_id}")
            assert "authentication failed" not in nodes.log(OURS)
            nodes.stop(OURS)
