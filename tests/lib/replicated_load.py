"""A client that produces continuously to a replicated topic, and the results of its records."""

import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import confluent_kafka

from common.kafka.admin.client import AdminClient
from common.kafka.admin.settings import AdminSettings
from common.kafka.admin.topics import describe_topics
from millstream.testing import LocalCluster
from tests.lib.waiting import until


class Load:
    """An idempotent producer that runs until it is stopped."""

    def __init__(
        self,
        cluster: LocalCluster,
        topic: str,
        settings: Mapping[str, Any] | None = None,
        *,
        name: str = "",
    ) -> None:
        """`settings` are of a client; `name` is in front of every value."""
        client = settings or {"bootstrap.servers": cluster.bootstrap_servers}
        self._producer = confluent_kafka.Producer({**client, "enable.idempotence": True})
        self._topic = topic
        self._name = name.encode()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged: set[bytes] = set()
        self.failures: list[object] = []

    def __enter__(self) -> "Load":
        self._thread.start()
        self.goes_on()
        return self

    def __exit__(self, *raised: object) -> None:
        if not self._stopped.is_set():
            self.end()

    def end(self) -> None:
        """Produce no more; everything is acknowledged when this returns."""
        self._stopped.set()
        self._thread.join()
        assert self._producer.flush(60) == 0
        assert not self.failures

    def goes_on(self) -> None:
        """Wait until more records are acknowledged."""
        before = len(self.acknowledged)
        until(lambda: len(self.acknowledged) > before + 100)

    def _run(self) -> None:
        number = 0
        while not self._stopped.is_set():
            number += 1
            value = b"%s%d" % (self._name, number)
            self._producer.produce(self._topic, value, b"%d" % number, on_delivery=self._note)
            self._producer.poll(0.002)

    def _note(self, error: object, message: confluent_kafka.Message) -> None:
        if error:
            self.failures.append(error)
        else:
            value = message.value()
            assert value is not None
            self.acknowledged.add(value)


class Partition:
    """The state of a partition in the cluster's metadata."""

    def __init__(self, cluster: LocalCluster, topic: str, number: int) -> None:
        with AdminClient(AdminSettings.of(cluster.bootstrap_servers)) as admin:
            (described,) = describe_topics(admin, [topic])
        found = described.partitions[number]
        self.leader = found.leader_id
        self.replicas = found.replicas
        self.isr = sorted(found.isr)


def consumed(bootstrap: str, topic: str, count: int, **settings: str) -> list[bytes]:
    """Read the partitions from the beginning to their ends."""
    wanted = {
        "bootstrap.servers": bootstrap,
        "group.id": "all",
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    consumer = confluent_kafka.Consumer(wanted)
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(count)])
    values: list[bytes] = []
    at_end: set[int | None] = set()
    while len(at_end) < count:
        for message in consumer.consume(1000, 0.1):
            if message.error() is None:
                values.append(message.value() or b"")
                at_end.discard(message.partition())
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                at_end.add(message.partition())
    consumer.close()
    return values


def segments(cluster: LocalCluster, broker_id: int, topic: str) -> dict[str, bytes]:
    """Return the bytes of every segment of a topic on one broker."""
    folder = Path(cluster.node(broker_id).folder)
    files = sorted(folder.rglob(f"{topic}-*/*.log"))
    # A directory that waits for its deletion has a suffix.
    return {
        f"{file.parent.name}/{file.name}": file.read_bytes()
        for file in files
        if re.fullmatch(rf"{topic}-\d+", file.parent.name)
    }


def are_equal(cluster: LocalCluster, broker_ids: Sequence[int], topic: str, count: int) -> bool:
    """Return whether these brokers have the same bytes of the topic."""
    first, *others = (segments(cluster, broker_id, topic) for broker_id in broker_ids)
    return len(first) >= count and all(first == other for other in others)
