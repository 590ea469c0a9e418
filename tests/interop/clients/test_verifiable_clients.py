"""Java's `VerifiableProducer` and `VerifiableConsumer` on three brokers that are killed meanwhile.

They are what Apache Kafka's own system tests produce and consume with: each tells of everything it
does as a line of JSON. One group is of the classic protocol, one of the consumer protocol.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka.admin
import pytest

from millstream.testing import LocalCluster
from tests.lib.apache_kafka import kafka_libs
from tests.lib.java import java
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

TOPIC = "numbers"
PARTITION_COUNT = 4
MESSAGE_COUNT = 1_750
STEP_COUNT = 125
GIVE_UP_SECONDS = 120.0
PROTOCOLS = ("classic", "consumer")


class Program:
    """One of the programs, and what it has told so far."""

    def __init__(self, libs: str, said: Path, name: str, *arguments: str) -> None:
        self.said = said
        command = [*java(libs, "-Xmx128m"), f"org.apache.kafka.tools.{name}"]
        with said.open("wb") as out:
            self.process = subprocess.Popen(
                [*command, "--topic", TOPIC, *arguments], stdout=out, stderr=subprocess.DEVNULL
            )

    def events(self) -> list[dict[str, Any]]:
        whole, _, _ = self.said.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def named(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events() if event["name"] == name]

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        finally:
            self.process.kill()


class Told:
    """Goes through what one consumer has told, and asserts that it may have been so."""

    def __init__(self) -> None:
        self.owned: set[int] = set()
        self.positions: dict[int, int] = {}
        self.values: list[int] = []

    def take(self, event: dict[str, Any]) -> None:
        take: Callable[[dict[str, Any]], None] | None = getattr(self, f"on_{event['name']}", None)
        if take is not None:
            take(event)

    def on_partitions_assigned(self, event: dict[str, Any]) -> None:
        self.owned |= {each["partition"] for each in event["partitions"]}

    def on_partitions_revoked(self, event: dict[str, Any]) -> None:
        for each in event["partitions"]:
            self.owned.discard(each["partition"])
            self.positions.pop(each["partition"], None)

    on_partitions_lost = on_partitions_revoked

    def on_record_data(self, event: dict[str, Any]) -> None:
        self.values.append(int(event["value"]))

    def on_records_consumed(self, event: dict[str, Any]) -> None:
        for each in event["partitions"]:
            partition, first = each["partition"], each["minOffset"]
            assert partition in self.owned, event
            assert self.positions.get(partition, first) == first, (event, self.positions)
            self.positions[partition] = each["maxOffset"] + 1

    def on_offsets_committed(self, event: dict[str, Any]) -> None:
        for each in event["offsets"] if event["success"] else ():
            position = self.positions.get(each["partition"])
            assert position is None or each["offset"] <= position, (event, self.positions)


def told(consumer: Program) -> Told:
    found = Told()
    for event in consumer.events():
        found.take(event)
    return found


class Held(NamedTuple):
    """A partition in the hands of a consumer, until it gave it back; milliseconds."""

    partition: int
    start_ms: int
    end_ms: int


def held(consumer: Program) -> Iterator[Held]:
    """Give what one consumer has held and given back; what it lost it did not know to be lost."""
    since: dict[int, int] = {}
    for event in consumer.events():
        for each in event.get("partitions", ()):
            partition = each["partition"]
            if event["name"] == "partitions_assigned":
                since[partition] = event["timestamp"]
            elif event["name"] == "partitions_lost":
                del since[partition]
            elif event["name"] == "partitions_revoked":
                yield Held(partition, since.pop(partition), event["timestamp"])


def held_by_two(group: list[Program]) -> list[tuple[Held, Held]]:
    one, other = (list(held(consumer)) for consumer in group)
    return [
        (a, b)
        for a in one
        for b in other
        if a.partition == b.partition and a.start_ms < b.end_ms and b.start_ms < a.end_ms
    ]


def make_topic(bootstrap: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    new = confluent_kafka.admin.NewTopic(TOPIC, PARTITION_COUNT)
    for made in admin.create_topics([new]).values():
        made.result(GIVE_UP_SECONDS)


def test_all_that_is_acknowledged_is_consumed_while_brokers_are_killed(tmp_path: Path) -> None:
    libs = kafka_libs()
    with LocalCluster(has_links=False) as cluster:
        make_topic(cluster.bootstrap_servers)
        where = ("--bootstrap-server", cluster.bootstrap_servers)
        groups = {
            protocol: [
                Program(
                    *(libs, tmp_path / f"{protocol}-{number}", "VerifiableConsumer"),
                    *(*where, "--verbose", "--group-id", protocol, "--group-protocol", protocol),
                )
                for number in range(2)
            ]
            for protocol in PROTOCOLS
        }
        consumers = [each for group in groups.values() for each in group]
        # Without these settings it tries each record once, and tells of those that failed.
        settings = tmp_path / "producer.properties"
        settings.write_text("retries=2147483647\nenable.idempotence=true\n")
        producer = Program(
            *(libs, tmp_path / "producer", "VerifiableProducer", *where),
            *("--command-config", str(settings)),
            *("--max-messages", str(MESSAGE_COUNT), "--throughput", "200"),
        )
        try:
            until(lambda: all(told(each).owned for each in consumers), GIVE_UP_SECONDS)
            for node_id in cluster.node_ids:
                cluster.kill(node_id)
                wait_for_more(producer)
                cluster.start(node_id)
                wait_for_more(producer)
            assert producer.process.wait(GIVE_UP_SECONDS) == 0
            for protocol in PROTOCOLS:
                until(lambda p=protocol: len(values(groups[p])) == MESSAGE_COUNT, GIVE_UP_SECONDS)
        finally:
            for each in (producer, *consumers):
                each.stop()
    acknowledged = [int(each["value"]) for each in producer.named("producer_send_success")]
    assert sorted(acknowledged) == list(range(MESSAGE_COUNT))
    assert not producer.named("producer_send_error")
    for group in groups.values():
        assert values(group) == set(acknowledged)
        assert any(held(group[0])), "a consumer that ends gives back what it has"
        assert not held_by_two(group)


def wait_for_more(producer: Program) -> None:
    """Wait until more is acknowledged, or all."""
    wanted = min(len(producer.named("producer_send_success")) + STEP_COUNT, MESSAGE_COUNT)
    until(lambda: len(producer.named("producer_send_success")) >= wanted, GIVE_UP_SECONDS)


def values(group: list[Program]) -> set[int]:
    return {value for consumer in group for value in told(consumer).values}
