"""`millstream lag` on a real broker: markers, groups without members, metrics, health."""

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from prometheus_client.parser import text_string_to_metric_families

from common.process.ending import NOBODY_READS
from millstream.launch import program_environment
from millstream.testing import LocalBroker
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.stock_clients import commit_offsets
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

EXPORTER = {
    "kafka_broker_info": {"id", "address"},
    "kafka_consumergroup_current_offset": {"consumergroup", "topic", "partition"},
    "kafka_consumergroup_lag": {"consumergroup", "topic", "partition"},
    "kafka_topic_partition_current_offset": {"topic", "partition"},
    "kafka_topic_partition_in_sync_replica": {"topic", "partition"},
    "kafka_topic_partition_leader_is_preferred": {"topic", "partition"},
    "kafka_topic_partition_oldest_offset": {"topic", "partition"},
    "kafka_topic_partition_replicas": {"topic", "partition"},
    "kafka_topic_partition_under_replicated_partition": {"topic", "partition"},
    "kafka_topic_partitions": {"topic"},
}
"""The names in the queries of strimzi-kafka-exporter.json and of the rules for the exporter, of
strimzi/strimzi-kafka-operator at 8541da1; kafka_cluster_partition_* are the brokers' own."""


SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class Kafka(Protocol):
    """A cluster to connect to."""

    @property
    def bootstrap_servers(self) -> str: ...


class Served(NamedTuple):
    """A cluster of ours or Apache Kafka's, with records and groups."""

    bootstrap_servers: str


@pytest.fixture(scope="module", params=["ours", "apache"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    if request.param == "ours":
        with LocalBroker() as started:
            yield filled(Served(started.bootstrap_servers))
    else:
        folder = tmp_path_factory.mktemp("apache")
        with running_node(kafka_libs(), folder, SETTINGS) as bootstrap:
            yield filled(Served(bootstrap))


def filled(broker: Served) -> Served:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result()
    plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(10):
        plain.produce("orders", f"{number}", partition=number % 2)
    plain.flush()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "desk"})
    producer.init_transactions()
    for _ in range(3):  # Offsets 5 to 13 of the first partition; 7, 10 and 13 are markers.
        producer.begin_transaction()
        producer.produce("orders", "a", partition=0)
        producer.produce("orders", "b", partition=0)
        producer.commit_transaction()
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    commit_offsets(settings, "done", {("orders", 0): 13, ("orders", 1): 5})
    commit_offsets(settings, "behind", {("orders", 0): 5, ("orders", 1): 0})
    return broker


def command(broker: Kafka, *arguments: str) -> list[str]:
    at = ["--bootstrap-server", broker.bootstrap_servers]
    return [sys.executable, "-m", "millstream", "lag", *at, *arguments]


def table(broker: Kafka, *arguments: str) -> list[list[str]]:
    ended = subprocess.run(
        command(broker, *arguments),
        capture_output=True,
        text=True,
        env=program_environment(),
        check=True,
    )
    return [line.split() for line in ended.stdout.splitlines()]


@contextmanager
def served(broker: Kafka, *arguments: str) -> Iterator[str]:
    with subprocess.Popen(
        command(broker, "--listen", "127.0.0.1:0", "--interval", "0.1", *arguments),
        stdout=subprocess.PIPE,
        text=True,
        env=program_environment(),
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1].removesuffix("/metrics")
        finally:
            process.terminate()
    assert process.returncode == 0


def numbers(url: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        text = answer.read().decode()
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/ready"):
            return True
    except urllib.error.HTTPError:
        return False


def test_markers_are_no_lag_and_groups_without_members_are_shown(broker: Served) -> None:
    rows = table(broker)
    assert rows[0][0] == "GROUP"
    assert [row[:5] for row in rows if row[0] == "orders" and row[1] == "0"] == [
        ["orders", "0", "5", "14", "6"],
        ["orders", "0", "13", "14", "0"],
    ]
    assert [(row[0], row[1], row[2]) for row in rows if row[0] in {"behind", "done"}] == [
        ("behind", "0", "11"),
        ("done", "0", "0"),
    ]


def test_groups_and_topics_are_chosen(broker: Served) -> None:
    assert [row[0] for row in table(broker, "--group", "do.*")[1:]] == ["done", "orders", "orders"]
    assert len(table(broker, "--topic", "other")) == 3


def test_a_reader_that_has_gone_ends_it_without_a_word(broker: Served) -> None:
    with subprocess.Popen(
        command(broker),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=program_environment(),
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == ("", NOBODY_READS)


def test_the_server_has_the_names_of_the_exporter(broker: Served) -> None:
    with served(broker) as url:
        until(lambda: is_ready(url))
        found = numbers(url)
        for name, labels in EXPORTER.items():
            assert found[name][0][0].keys() == labels, name
        lags = {
            (labels["consumergroup"], labels["partition"]): value
            for labels, value in found["kafka_consumergroup_lag"]
        }
        assert lags == {
            ("behind", "0"): 6,
            ("behind", "1"): 5,
            ("done", "0"): 0,
            ("done", "1"): 0,
        }
        seconds = {
            labels["group"]: value
            for labels, value in found["kafka_consumergroup_group_max_lag_seconds"]
        }
        assert seconds["done"] == 0 < seconds["behind"]
        # Ten looks later it is known that the group does not go on.
        until(lambda: ({"group": "behind"}, 3.0) in numbers(url)["burrow_kafka_consumer_status"])


def test_a_query_of_spark_is_shown_by_its_checkpoint(broker: Served, tmp_path: Path) -> None:
    for folder in ("offsets", "commits"):
        (tmp_path / folder).mkdir()
    (tmp_path / "offsets" / "4").write_text('v1\n{}\n{"orders":{"0":11,"1":5}}')
    (tmp_path / "commits" / "4").write_text("v1\n{}")
    rows = table(broker, "--checkpoint", f"sales={tmp_path}", "--group", "none")
    assert rows[1][:3] == ["sales", "spark", "2"]


def test_without_a_broker_it_is_live_and_not_ready_and_ends_with_an_error() -> None:
    with LocalBroker() as stopped:
        stopped.create_topic("orders", 1)
        with served(stopped, "--timeout", "1") as url:
            until(lambda: is_ready(url))
            stopped.kill()
            until(lambda: not is_ready(url))
            with urllib.request.urlopen(f"{url}/health/live"):
                pass
            assert numbers(url)["millstream_lag_failed_looks_total"][0][1] > 0
        ended = subprocess.run(
            command(stopped, "--timeout", "1"),
            capture_output=True,
            text=True,
            env=program_environment(),
            check=False,
        )
        assert ended.returncode == 1
        assert ended.stderr.startswith("millstream lag: ")
