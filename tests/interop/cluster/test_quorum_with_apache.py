"""A dynamic quorum of Apache Kafka and ours: each joins that of the other, and is left alone."""

from pathlib import Path

import confluent_kafka.admin
import pytest

from broker.cli.admin_settings import admin_settings
from common.kafka.admin.client import AdminClient
from common.kafka.admin.cluster import describe_features
from tests.lib.apache_kafka import kafka_libs, run_tool
from tests.lib.apache_quorum import apache_node
from tests.lib.dynamic_quorum import DynamicQuorum
from tests.lib.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"
APACHE, OURS = 1, 2
PATIENCE_SECONDS = 60


def voters(nodes: DynamicQuorum, bootstrap: str) -> list[int]:
    """Give the voters, none while a new leader is being elected."""
    try:
        return nodes.voters(bootstrap)
    except AssertionError:
        return []


def create_topic(bootstrap: str, name: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    topic = confluent_kafka.admin.NewTopic(name, 1, 1)
    for created in admin.create_topics([topic], request_timeout=30).values():
        created.result(PATIENCE_SECONDS)


def topics(bootstrap: str) -> set[str]:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    return {name for name in admin.list_topics(timeout=30).topics if not name.startswith("__")}


def brokers(bootstrap: str) -> set[int]:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    return set(admin.list_topics(timeout=30).brokers)


def levels(bootstrap: str) -> dict[str, int]:
    """Give the finalized level of each feature, as a broker tells it."""
    with AdminClient(admin_settings(bootstrap, None, None)) as client:
        found, _ = describe_features(client, None)
    return {level.name: level.finalized for level in found}


def is_up(bootstrap: str) -> bool:
    try:
        topics(bootstrap)
    except confluent_kafka.KafkaException:
        return False
    return True


def quorum_of(tmp_path: Path, roles_of_ours: str) -> DynamicQuorum:
    nodes = DynamicQuorum(tmp_path, [APACHE, OURS])
    nodes.configure(APACHE, "broker,controller")
    nodes.configure(OURS, roles_of_ours)
    return nodes


def test_our_node_joins_a_quorum_of_apache_kafka_and_then_leads_it_alone(tmp_path: Path) -> None:
    libs = kafka_libs()
    with (
        quorum_of(tmp_path, "broker,controller") as nodes,
        apache_node(libs, nodes, APACHE, "--standalone"),
    ):
        apache = nodes.bootstrap_server(APACHE)
        until(lambda: is_up(apache))
        create_topic(apache, "first")
        nodes.format(OURS, "--no-initial-controllers")
        nodes.start(OURS)
        nodes.add(apache, OURS)
        assert nodes.voters(apache) == [APACHE, OURS]
        # Our broker is registered at Apache Kafka's controller, with all features of its quorum.
        ours = nodes.bootstrap_server(OURS)
        until(lambda: brokers(ours) == brokers(apache) == {APACHE, OURS})
        assert levels(ours) == levels(apache)
        create_topic(apache, "second")
        # The leader, which is Apache Kafka's, removes itself.
        assert "Removed  KRaft controller 1" in nodes.remove(apache, APACHE)
        until(lambda: voters(nodes, apache) == [OURS])
        create_topic(apache, "third")
        until(lambda: topics(apache) == {"first", "second", "third"})


def test_a_node_of_apache_kafka_joins_our_quorum_and_then_leads_it_alone(tmp_path: Path) -> None:
    libs = kafka_libs()
    with quorum_of(tmp_path, "broker,controller") as nodes:
        nodes.format(OURS, "--standalone")
        nodes.start(OURS)
        ours, apache = nodes.bootstrap_server(OURS), nodes.bootstrap_server(APACHE)
        create_topic(ours, "first")
        with apache_node(libs, nodes, APACHE, "--no-initial-controllers"):
            until(lambda: is_up(apache))
            added = run_tool(
                *(libs, TOOL, "--bootstrap-server", ours, "--command-config"),
                *(str(nodes.home(APACHE) / "server.properties"), "add-controller"),
            )
            assert added.returncode == 0, added.stderr
            assert brokers(apache) == brokers(ours) == {APACHE, OURS}
            assert levels(apache) == levels(ours)
            create_topic(ours, "second")
            removed = run_tool(
                *(libs, TOOL, "--bootstrap-server", apache, "remove-controller"),
                *("-i", str(OURS), "-d", nodes.directory_id(OURS)),
            )
            assert removed.returncode == 0, removed.stderr
            until(lambda: voters(nodes, apache) == [APACHE])
            create_topic(apache, "third")
            until(lambda: topics(apache) == {"first", "second", "third"})
