"""The active controller is killed, paused, cut off or restarted while topics are created."""

import contextlib
import json
import subprocess
import threading
from collections import Counter

import confluent_kafka
import pytest

from broker.cli.admin_settings import admin_settings
from common.kafka.admin.client import AdminClient
from common.kafka.admin.configs import Resource, ResourceType, alter, describe
from common.kafka.admin.topics import list_topics
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from millstream.launch import program_command, program_environment
from millstream.testing import LocalCluster
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

ENOUGH = 20
REQUEST_SECONDS = 3.0


class Creator(threading.Thread):
    """Creates topics through one broker, one after the other, and remembers what was confirmed."""

    def __init__(self, cluster: LocalCluster, broker_id: int) -> None:
        super().__init__()
        self.topic_ids: dict[str, bytes] = {}
        self._address = cluster.address(broker_id)
        self._name = f"through-{broker_id}"
        self._is_stopping = threading.Event()

    def run(self) -> None:
        number = 0
        while not self._is_stopping.is_set():
            # A broker that is down, frozen or without a controller: what it did is not known.
            with (
                contextlib.suppress(OSError),
                RawConnection(self._address, REQUEST_SECONDS) as connection,
            ):
                while not self._is_stopping.is_set():
                    number += 1
                    self._create(connection, f"{self._name}-{number}")
            self._is_stopping.wait(0.05)

    def _create(self, connection: RawConnection, name: str) -> None:
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=2, replication_factor=1)],
            timeout_ms=2000,
        )
        answer = connection.ask(ApiKey.CREATE_TOPICS, 7, request)
        assert isinstance(answer, CreateTopicsResponse)
        (result,) = answer.topics
        if result.error_code == 0:
            self.topic_ids[name] = result.topic_id

    def stop(self) -> None:
        self._is_stopping.set()
        self.join()


class Creations:
    """Topic creations through every broker of a cluster at once."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._creators = [Creator(cluster, broker_id) for broker_id in cluster.broker_ids]

    def __enter__(self) -> "Creations":
        for creator in self._creators:
            creator.start()
        return self

    def __exit__(self, *_: object) -> None:
        for creator in self._creators:
            creator.stop()

    def confirmed(self) -> dict[str, bytes]:
        return {name: id_ for one in self._creators for name, id_ in list(one.topic_ids.items())}

    def go_on(self) -> None:
        """Wait until a good many more are confirmed."""
        goal = len(self.confirmed()) + ENOUGH
        until(lambda: len(self.confirmed()) >= goal)


def topics_at(cluster: LocalCluster, broker_id: int) -> dict[str, tuple[bytes, int]]:
    with AdminClient(admin_settings(cluster.address(broker_id))) as client:
        return {
            topic.name: (topic.topic_id, len(topic.partitions)) for topic in list_topics(client)
        }


def created_names(cluster: LocalCluster, node_id: int) -> Counter[str]:
    """Count the records of each topic's creation in a node's metadata log."""
    (file,) = cluster.node(node_id).data_folder.glob("__cluster_metadata-0/*0.log")
    command = program_command(
        "broker", "dump-log", "--cluster-metadata-decoder", "--files", str(file)
    )
    dumped = subprocess.run(
        command, env=program_environment(), capture_output=True, text=True, check=True, timeout=120
    )
    names: Counter[str] = Counter()
    for line in dumped.stdout.splitlines():
        _, found, record = line.partition(" payload: ")
        if found and '"TOPIC_RECORD"' in record:
            names[json.loads(record)["data"]["name"]] += 1
    return names


def check_nothing_is_lost_or_doubled(cluster: LocalCluster, creations: Creations) -> None:
    confirmed = creations.confirmed()
    expected = topics_at(cluster, cluster.active_controller())
    for broker_id in cluster.broker_ids:
        until(lambda: topics_at(cluster, broker_id) == expected)  # noqa: B023 - used at once
    assert {name: expected.get(name) for name in confirmed} == {
        name: (topic_id, 2) for name, topic_id in confirmed.items()
    }
    names = created_names(cluster, cluster.active_controller())
    assert names.keys() == expected.keys()
    assert set(names.values()) == {1}


@pytest.mark.parametrize("fault", ["killed", "paused", "cut off", "restarted"])
def test_confirmed_topics_survive_the_active_controller(
    kafka_cluster: LocalCluster, fault: str
) -> None:
    cluster = kafka_cluster
    with Creations(cluster) as creations:
        creations.go_on()
        leader = cluster.active_controller()
        if fault == "killed":
            cluster.kill(leader)
        elif fault == "paused":
            cluster.pause(leader)
        elif fault == "cut off":
            cluster.isolate(leader)
        else:
            cluster.stop(leader)
        until(lambda: cluster.active_controller() != leader)
        creations.go_on()
        if fault == "paused":
            cluster.resume(leader)
        elif fault == "cut off":
            cluster.heal()
        else:
            cluster.start(leader)
        creations.go_on()
    check_nothing_is_lost_or_doubled(cluster, creations)


def test_all_nodes_killed_at_once_keep_everything(kafka_cluster: LocalCluster) -> None:
    cluster = kafka_cluster
    with Creations(cluster) as creations:
        creations.go_on()
        with AdminClient(admin_settings(cluster.address(2))) as client:
            topic = Resource(ResourceType.TOPIC, min(creations.confirmed()))
            alter(client, {topic: {"retention.ms": "123456"}})
        produced = produce(cluster, topic.name)
        cluster.kill()
    cluster.start()
    check_nothing_is_lost_or_doubled(cluster, creations)
    with AdminClient(admin_settings(cluster.address(3))) as client:
        settings = {
            entry.name: entry.value for entry in describe(client, topic, with_synonyms=False)
        }
    assert settings["retention.ms"] == "123456"
    assert consume(cluster, topic.name, len(produced)) == produced
    with Creations(cluster) as more:
        # They go on where they were: names that exist are refused, new ones are created.
        more.go_on()


def produce(cluster: LocalCluster, topic: str) -> set[bytes]:
    values = {b"value %d" % number for number in range(200)}
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(60) == 0
    return values


def consume(cluster: LocalCluster, topic: str, count: int) -> set[bytes]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "everything",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found: set[bytes] = set()

    def is_complete() -> bool:
        for message in consumer.consume(count, timeout=0.5):
            if message.error() is None:
                found.add(message.value())
        return len(found) >= count

    until(is_complete)
    consumer.close()
    return found


def test_controllers_apart_from_brokers() -> None:
    with LocalCluster(brokers=2, controllers=3) as cluster:
        leader = cluster.active_controller()
        assert leader in cluster.controller_ids
        with Creations(cluster) as creations:
            creations.go_on()
            cluster.kill(leader)
            creations.go_on()
        confirmed = creations.confirmed()
        for broker_id in cluster.broker_ids:
            until(lambda: confirmed.keys() <= topics_at(cluster, broker_id).keys())  # noqa: B023
