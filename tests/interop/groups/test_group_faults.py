"""Groups of both kinds, with members of both, while their coordinators are killed and restarted."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import confluent_kafka
import confluent_kafka.admin
import pytest

from millstream.testing import LocalCluster
from tests.lib.waiting import until

pytestmark = pytest.mark.interop

TOPIC = "orders"
PARTITIONS = 6
MEMBERS = 2
EVERY_SECONDS = 0.04
"""Each record is read, and asked for, by four groups."""


class Member(threading.Thread):
    """One member of a group: reads, commits what it has read, counts what it is assigned."""

    def __init__(self, bootstrap: str, group: str, settings: dict[str, object]) -> None:
        super().__init__(daemon=True)
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
                **settings,
            }
        )
        self._consumer.subscribe([TOPIC], on_assign=self._on_assign, on_lost=self._on_lost)
        self._is_stopping = threading.Event()
        self.assignment_count = 0
        self.lost_count = 0
        self.values: set[bytes] = set()
        self.committed: dict[int, int] = {}
        # Only this thread asks the consumer: it holds the interpreter's lock while it waits.
        self.assigned: list[int] = []

    def _on_assign(self, _consumer: object, partitions: list[object]) -> None:
        self.assignment_count += bool(partitions)

    def _on_lost(self, _consumer: object, _partitions: list[object]) -> None:
        self.lost_count += 1

    def run(self) -> None:
        unsaved: dict[int, int] = {}
        while not self._is_stopping.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.values.add(message.value())
                unsaved[message.partition()] = message.offset() + 1
            self.assigned = [each.partition for each in self._consumer.assignment()]
            if unsaved and (message is None or len(self.values) % 20 == 0):
                self._commit(unsaved)
        self._consumer.close()

    def _commit(self, unsaved: dict[int, int]) -> None:
        offsets = [confluent_kafka.TopicPartition(TOPIC, *each) for each in unsaved.items()]
        try:
            done = self._consumer.commit(offsets=offsets, asynchronous=False)
        except confluent_kafka.KafkaException:
            return  # The coordinator is away; what is read stays to be committed.
        self.committed |= {each.partition: each.offset for each in done if each.error is None}
        unsaved.clear()

    def stop(self) -> None:
        self._is_stopping.set()
        self.join()


class Group:
    """The members of one group."""

    def __init__(self, cluster: LocalCluster, name: str, **settings: object) -> None:
        self.name = name
        is_static = bool(settings.pop("static", False))
        names = [{"group.instance.id": f"{name}-{number}"} for number in range(MEMBERS)]
        self.members = [
            Member(
                cluster.bootstrap_servers,
                name,
                {**settings, **(names[number] if is_static else {})},
            )
            for number in range(MEMBERS)
        ]
        for member in self.members:
            member.start()

    def is_settled(self) -> bool:
        assigned = [partition for member in self.members for partition in member.assigned]
        return sorted(assigned) == list(range(PARTITIONS))

    @property
    def rebalance_count(self) -> int:
        return max(member.assignment_count + member.lost_count for member in self.members)

    @property
    def values(self) -> set[bytes]:
        return set().union(*(member.values for member in self.members))


GROUPS: dict[str, dict[str, object]] = {
    "classic": {"partition.assignment.strategy": "cooperative-sticky"},
    "classic-static": {"static": True},
    "consumer": {"group.protocol": "consumer"},
    "consumer-static": {"group.protocol": "consumer", "static": True},
}


@contextmanager
def running_groups(cluster: LocalCluster) -> Iterator[list[Group]]:
    groups = [Group(cluster, name, **settings) for name, settings in GROUPS.items()]
    try:
        yield groups
    finally:
        for group in groups:
            for member in group.members:
                member.stop()


class Load(threading.Thread):
    """Produces without end; remembers what was acknowledged."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        )
        self._is_stopping = threading.Event()
        self.acknowledged: set[bytes] = set()

    def run(self) -> None:
        number = 0
        while not self._is_stopping.wait(EVERY_SECONDS):
            number += 1
            value = f"order-{number}".encode()
            self._producer.produce(TOPIC, value, on_delivery=self._on_delivery)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def _on_delivery(self, error: object, message: confluent_kafka.Message) -> None:
        if error is None:
            self.acknowledged.add(message.value())

    def stop(self) -> None:
        self._is_stopping.set()
        self.join()


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    settings = {"group_initial_rebalance_delay_ms": 500, "offsets_topic_num_partitions": 6}
    with LocalCluster(3, has_links=False, **settings) as cluster:
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        topic = confluent_kafka.admin.NewTopic(TOPIC, PARTITIONS, 3)
        for created in admin.create_topics([topic]).values():
            created.result(30)
        yield cluster


def committed(cluster: LocalCluster, group: str) -> dict[int, int]:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    wanted = confluent_kafka.ConsumerGroupTopicPartitions(group)
    found = admin.list_consumer_group_offsets([wanted])[group].result(30)
    return {each.partition: each.offset for each in found.topic_partitions}


@pytest.mark.parametrize("way", ["killed", "restarted"])
def test_groups_go_on_without_a_rebalance_while_every_broker_is(
    cluster: LocalCluster, way: str
) -> None:
    load = Load(cluster.bootstrap_servers)
    with running_groups(cluster) as groups:
        until(lambda: all(group.is_settled() for group in groups))
        load.start()
        until(lambda: all(len(group.values) > 50 for group in groups))
        before = {group.name: group.rebalance_count for group in groups}
        for broker_id in cluster.broker_ids:
            (cluster.kill if way == "killed" else cluster.stop)(broker_id)
            time.sleep(1.0)  # Not to wait for anything: for so long the broker is away.
            cluster.start(broker_id)
            count = len(load.acknowledged)
            until(lambda: len(load.acknowledged) > count + 25)  # noqa: B023 - used at once
            goal = set(load.acknowledged)
            until(lambda: all(group.values >= goal for group in groups))  # noqa: B023
        load.stop()
        until(lambda: all(group.values >= load.acknowledged for group in groups))
        assert all(group.is_settled() for group in groups)
        rebalances = {group.name: group.rebalance_count - before[group.name] for group in groups}
    for group in groups:
        found = committed(cluster, group.name)
        for member in group.members:
            for partition, offset in member.committed.items():
                assert found[partition] >= offset, (group.name, partition)
    assert rebalances == dict.fromkeys(GROUPS, 0)
