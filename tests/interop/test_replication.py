"""Three real brokers keep every record three times, byte for byte, whichever of them dies."""

import threading
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from millrace.testing import LocalCluster
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

TOPIC, PARTITIONS = "kept", 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(has_links=False) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result()
        yield started


class Load:
    """An idempotent producer that goes on until it is told to stop."""

    def __init__(self, cluster: LocalCluster) -> None:
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True}
        self._producer = confluent_kafka.Producer(settings)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged: set[bytes] = set()
        self.failures: list[object] = []

    def __enter__(self) -> "Load":
        self._thread.start()
        until(lambda: len(self.acknowledged) > 100)
        return self

    def __exit__(self, *raised: object) -> None:
        self._stopped.set()
        self._thread.join()
        assert self._producer.flush(60) == 0
        assert not self.failures

    def goes_on(self) -> None:
        """Wait until more is acknowledged."""
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) > before + 100)

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            number += 1
            self._producer.produce(TOPIC, b"%d" % number, b"%d" % number, on_delivery=self._note)
            self._producer.poll(0.002)

    def _note(self, error: object, message: confluent_kafka.Message) -> None:
        if error:
            self.failures.append(error)
        else:
            value = message.value()
            assert value is not None
            self.acknowledged.add(value)


def in_sync(cluster: LocalCluster) -> list[int]:
    """How many replicas of each partition are in sync."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    found = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions
    return [len(found[number].isrs) for number in sorted(found)]


def leader_of(cluster: LocalCluster, partition: int) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    return int(admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions[partition].leader)


def consumed(cluster: LocalCluster) -> set[bytes]:
    """Read everything from the beginning."""
    settings = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "all",
        "enable.partition.eof": True,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, n, 0) for n in range(PARTITIONS)])
    values, at_end = set(), set()
    while len(at_end) < PARTITIONS:
        for message in consumer.consume(1000, 1.0):
            if message.error() is None:
                values.add(message.value())
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                at_end.add(message.partition())
    consumer.close()
    return values


def segments(cluster: LocalCluster, broker_id: int) -> dict[str, bytes]:
    """Give the bytes of every segment of the topic on one broker."""
    folder = Path(cluster.node(broker_id).folder)
    files = sorted(folder.rglob(f"{TOPIC}-*/*.log"))
    return {f"{file.parent.name}/{file.name}": file.read_bytes() for file in files}


def is_kept_everywhere(cluster: LocalCluster) -> bool:
    first, second, third = (segments(cluster, broker_id) for broker_id in cluster.broker_ids)
    return len(first) >= PARTITIONS and first == second == third


@pytest.mark.parametrize("fault", ["killed", "stopped", "wiped"])
def test_a_leader_goes_under_load_and_everything_is_kept(cluster: LocalCluster, fault: str) -> None:
    with Load(cluster) as load:
        leader = leader_of(cluster, 0)
        if fault == "stopped":
            cluster.stop(leader)
        else:
            cluster.kill(leader)
        load.goes_on()
        if fault == "wiped":
            cluster.wipe(leader)
        cluster.start(leader)
        load.goes_on()
    until(lambda: in_sync(cluster) == [3] * PARTITIONS)
    assert load.acknowledged <= consumed(cluster)
    until(lambda: is_kept_everywhere(cluster))
