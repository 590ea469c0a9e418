"""Share groups as unmodified clients see them: Java's KafkaShareConsumer in Apache Kafka's tools,
and confluent-kafka's ShareConsumer, also while brokers are killed.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from common.kafka.admin.client import AdminClient as AskingClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.share_groups import share_offsets
from common.kafka.errors import ErrorCode
from millstream.testing import LocalCluster
from tests.lib.apache_kafka import kafka_libs
from tests.lib.java import java
from tests.lib.share_member import ShareMember, topic_id_of
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

PARTITION_COUNT = 3
GIVE_UP_SECONDS = 240.0
TOOLS = "org.apache.kafka.tools"
SOON = {
    "group.share.session.timeout.ms": 5_000,
    "group.share.min.session.timeout.ms": 5_000,
    "group.share.heartbeat.interval.ms": 500,
    "group.share.min.heartbeat.interval.ms": 500,
}
"""The partitions of a member that is killed go to the others soon, and a rebalance is quick."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(has_links=False, **SOON) as started:
        yield started


@pytest.fixture
def topic(cluster: LocalCluster) -> str:
    """A topic with three replicas of each partition."""
    name = f"jobs-{uuid4()}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for made in admin.create_topics([NewTopic(name, PARTITION_COUNT, 3)]).values():
        made.result(GIVE_UP_SECONDS)
    return name


def a_group(cluster: LocalCluster) -> str:
    """Return the name of a new share group that begins with the first record."""
    name = f"group-{uuid4()}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    earliest = ConfigEntry(
        "share.auto.offset.reset",
        "earliest",
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ConfigResource.Type.GROUP, name, incremental_configs=[earliest])
    for made in admin.incremental_alter_configs([resource]).values():
        made.result(GIVE_UP_SECONDS)
    return name


def produce(cluster: LocalCluster, topic: str, count: int, on_some: Any = None) -> set:
    """Produce records; return their partitions and offsets. `on_some` is called between them."""
    places: set[tuple[int, int]] = set()
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "enable.idempotence": True,
        "topic.metadata.refresh.interval.ms": 1_000,
    }
    producer = Producer(settings)

    def note(error: object, message: Any) -> None:
        assert error is None, error
        places.add((message.partition(), message.offset()))

    for number in range(count):
        producer.produce(topic, f"{number}".encode(), callback=note)
        if on_some is not None and number % 200 == 0:
            producer.poll(0.1)
            on_some(number)
    assert producer.flush(GIVE_UP_SECONDS) == 0
    return places


def lags(cluster: LocalCluster, group: str) -> list[int | None]:
    """Return the records that are not acknowledged yet, for each partition."""
    with AskingClient(AdminSettings.of(cluster.bootstrap_servers)) as client:
        return [each.lag for each in share_offsets(client, group).values()]


def run(name: str, *arguments: str) -> str:
    """Run one of Apache Kafka's tools to its end; return what it has printed."""
    command = [*java(kafka_libs(), "-Xmx128m"), f"{TOOLS}.{name}", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=GIVE_UP_SECONDS, check=False
    )
    return done.stdout + done.stderr


class Verifiable:
    """A VerifiableShareConsumer, and what it has told so far."""

    def __init__(self, cluster: LocalCluster, topic: str, group: str, said: Path) -> None:
        self.said = said
        arguments = [
            *("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic),
            *("--group-id", group, "--acknowledgement-mode", "sync"),
        ]
        command = [*java(kafka_libs(), "-Xmx128m"), f"{TOOLS}.VerifiableShareConsumer"]
        with said.open("wb") as out:
            self.process = subprocess.Popen(
                [*command, *arguments], stdout=out, stderr=subprocess.DEVNULL
            )

    def events(self, name: str) -> list[dict[str, Any]]:
        whole, _, _ = self.said.read_text().rpartition("\n")
        told = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
        return [event for event in told if event["name"] == name]

    def places(self, name: str, **fields: Any) -> list[tuple[int, int]]:
        """Return the partitions and offsets in the events that have these fields."""
        return [
            (each["partition"], offset)
            for event in self.events(name)
            if fields.items() <= event.items()
            for each in event["partitions"]
            for offset in each["offsets"]
        ]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


# --- Apache Kafka's tools ---


def test_the_console_share_consumer_gets_every_record(cluster: LocalCluster, topic: str) -> None:
    produce(cluster, topic, 100)
    where = ("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic)
    group = a_group(cluster)
    printed = run(
        *("consumer.ConsoleShareConsumer", *where, "--group", group),
        *("--max-messages", "100", "--timeout-ms", "30000"),
    )
    values = [line for line in printed.splitlines() if line.isdigit()]
    assert sorted(map(int, values)) == list(range(100)), printed


def test_rejected_records_are_not_delivered_again(cluster: LocalCluster, topic: str) -> None:
    produce(cluster, topic, 10)
    where = ("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic)
    group = a_group(cluster)
    first = run(
        *("consumer.ConsoleShareConsumer", *where, "--group", group, "--reject"),
        *("--max-messages", "10", "--timeout-ms", "30000"),
    )
    assert "Processed a total of 10 messages" in first
    second = run(
        *("consumer.ConsoleShareConsumer", *where, "--group", group, "--timeout-ms", "2000"),
    )
    assert "Processed a total of 0 messages" in second


def test_released_records_are_delivered_again_up_to_the_limit(
    cluster: LocalCluster, topic: str
) -> None:
    produce(cluster, topic, 1)
    where = ("--bootstrap-server", cluster.bootstrap_servers, "--topic", topic)
    printed = run(
        *("consumer.ConsoleShareConsumer", *where, "--group", a_group(cluster), "--release"),
        *("--timeout-ms", "3000", "--formatter-property", "print.delivery=true"),
    )
    deliveries = [line.split() for line in printed.splitlines() if "elivery:" in line]
    assert [line[0].rpartition(":")[2] for line in deliveries] == ["1", "2", "3", "4", "5"], printed


def test_the_performance_tool_reads_all_records(cluster: LocalCluster, topic: str) -> None:
    produce(cluster, topic, 20_000)
    printed = run(
        *("ShareConsumerPerformance", "--bootstrap-server", cluster.bootstrap_servers),
        *("--topic", topic, "--group", a_group(cluster), "--num-records", "20000"),
        *("--timeout", "30000", "--threads", "2"),
    )
    figures = printed.splitlines()[-1].split(", ")
    assert int(figures[5]) >= 20_000, printed


def test_everything_is_acknowledged_while_brokers_and_consumers_are_killed(
    cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    group = a_group(cluster)
    consumers = [
        Verifiable(cluster, topic, group, tmp_path / f"consumer-{number}") for number in range(3)
    ]
    try:
        until(lambda: all(each.events("startup_complete") for each in consumers), GIVE_UP_SECONDS)

        def disturb(number: int) -> None:
            if number == 1_000:
                cluster.kill(2)
            elif number == 2_000:
                consumers[0].kill()
            elif number == 3_000:
                cluster.start(2)
            elif number == 4_000:
                cluster.kill(3)
            elif number == 5_000:
                cluster.start(3)

        produced = produce(cluster, topic, 6_000, disturb)

        def acknowledged(*, success: bool) -> list[tuple[int, int]]:
            told = [each.places("offsets_acknowledged", success=success) for each in consumers]
            return list(chain.from_iterable(told))

        def unknown() -> set[tuple[int, int]]:
            """What may be acknowledged: who was killed could neither answer nor tell."""
            killed = consumers[0].places("records_consumed")
            return {*killed, *acknowledged(success=False)}

        until(lambda: lags(cluster, group) == [0] * PARTITION_COUNT, GIVE_UP_SECONDS)
        until(lambda: produced <= {*acknowledged(success=True), *unknown()}, GIVE_UP_SECONDS)
        successes = acknowledged(success=True)
        assert set(successes) <= produced
        assert len(successes) == len(set(successes)), "acknowledged twice, with success"
    finally:
        for each in consumers:
            each.kill()


# --- confluent-kafka ---


def drain(
    consumer: ShareConsumer, count: int, seconds: float = 30.0
) -> list[tuple[int, int, bytes]]:
    """Poll until there are as many records; return their places and values."""
    found: list[tuple[int, int, bytes]] = []
    ends = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < ends:
        for message in consumer.poll(1.0):
            assert message.error() is None, message.error()
            found.append((message.partition(), message.offset(), message.value()))
    return found


def test_two_confluent_share_consumers_share_the_work(cluster: LocalCluster, topic: str) -> None:
    produced = produce(cluster, topic, 2_000)
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": a_group(cluster)}
    with ShareConsumer(settings) as one, ShareConsumer(settings) as two:
        one.subscribe([topic])
        two.subscribe([topic])
        found: list[tuple[int, int, bytes]] = []
        until(
            lambda: (
                found.extend(drain(one, 1, 0.5) + drain(two, 1, 0.5)) or len(found) >= len(produced)
            ),
            GIVE_UP_SECONDS,
        )
        one.commit_sync()
        two.commit_sync()
    assert {(partition, offset) for partition, offset, _ in found} == produced
    assert len(found) == len(produced)


def test_a_closed_confluent_consumer_leaves_its_records_to_others(
    cluster: LocalCluster, topic: str
) -> None:
    produced = produce(cluster, topic, 50)
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": a_group(cluster),
        "share.acknowledgement.mode": "explicit",
    }
    with ShareConsumer(settings) as one:
        one.subscribe([topic])
        first = drain(one, 1)
        assert first
    with ShareConsumer({**settings, "share.acknowledgement.mode": "implicit"}) as two:
        two.subscribe([topic])
        found = drain(two, 50)
        two.commit_sync()
    assert {(partition, offset) for partition, offset, _ in found} == produced


def is_written(cluster: LocalCluster, topic: str, partition: int) -> bool:
    """Write a record; return False if the broker that was asked does not know the partition."""
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    # To produce to a partition that it does not know is a SystemError in confluent-kafka 2.16.
    if partition not in producer.list_topics(topic, GIVE_UP_SECONDS).topics[topic].partitions:
        return False
    producer.produce(
        topic, b"early", partition=partition, on_delivery=lambda error, _: errors.append(error)
    )
    assert producer.flush(GIVE_UP_SECONDS) == 0
    return errors == [None]


def test_records_in_partitions_that_are_added_are_not_lost_to_a_group_that_begins_at_the_end(
    cluster: LocalCluster, topic: str
) -> None:
    before = produce(cluster, topic, 20)
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": f"latest-{uuid4()}"}
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    with ShareConsumer(settings) as consumer:
        consumer.subscribe([topic])
        found: list[tuple[int, int, bytes]] = []
        until(
            lambda: produce(cluster, topic, 1) and (found.extend(drain(consumer, 1, 0.5)) or found),
            GIVE_UP_SECONDS,
        )
        assert not {(partition, offset) for partition, offset, _ in found} & before
        grown = admin.create_partitions([NewPartitions(topic, PARTITION_COUNT + 3)])
        grown[topic].result(GIVE_UP_SECONDS)
        for partition in range(PARTITION_COUNT, PARTITION_COUNT + 3):
            until(partial(is_written, cluster, topic, partition), GIVE_UP_SECONDS)

        def has_all() -> bool:
            found.extend(drain(consumer, 1, 0.5))
            return sum(value == b"early" for _, _, value in found) >= 3

        until(has_all, GIVE_UP_SECONDS)


# --- the protocol itself ---


def test_a_broker_that_does_not_lead_names_the_leader(cluster: LocalCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    leaders = {
        number: found.leader
        for number, found in admin.list_topics(topic, 10).topics[topic].partitions.items()
    }
    other = next(node_id for node_id in cluster.node_ids if node_id != leaders[0])
    topic_id = topic_id_of(cluster.bootstrap_servers.split(",")[0], topic)
    with ShareMember(cluster.address(other), "a group", topic_id) as member:
        response = member.fetch([0], max_wait_ms=30_000)  # It does not wait.
    (found,) = response.responses[0].partitions
    assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert found.current_leader.leader_id == leaders[0]
    assert [endpoint.node_id for endpoint in response.node_endpoints] == [leaders[0]]
