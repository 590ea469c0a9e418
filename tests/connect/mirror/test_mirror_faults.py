"""What a mirror needs is killed or frozen while records come in: none is lost, order stays."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from connect.mirror.whole_topic import whole_topic
from millrace.mirror import RemoteClusterUtils
from millrace.testing import LocalBroker
from tests.lib.connect_worker import eventually
from tests.lib.mirror_process import (
    MirrorProcess,
    consume_some,
    properties_file,
    records,
    topic_names,
)

pytestmark = pytest.mark.slow

PARTITIONS = 2
ENOUGH = 100
KILLS = 2


class Load:
    """Writes numbers to every partition all the while, in order; `acknowledged` counts them."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5}
        )
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent = self.acknowledged = 0

    def _run(self) -> None:
        while not self._is_over.wait(0.005):
            partition = self.sent % PARTITIONS
            value = str(self.sent).encode()
            self._producer.produce(
                "orders", value, partition=partition, on_delivery=self._delivered
            )
            self.sent += 1
            self._producer.poll(0)

    def _delivered(self, error: object, _: object) -> None:
        assert error is None, error
        self.acknowledged += 1

    @contextmanager
    def running(self) -> Iterator["Load"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._is_over.set()
            self._thread.join(10)
            assert self._producer.flush(60) == 0

    def more(self) -> None:
        """Wait until so many more stand in the source."""
        wanted = self.acknowledged + ENOUGH
        eventually(lambda: self.acknowledged >= wanted)


def values(servers: str, topic: str, partition: int) -> list[int]:
    found = records(servers, topic) if topic in topic_names(servers) else []
    return [int(each[1] or b"") for each in found if each[2] == partition]


def copied(servers: str) -> int:
    return sum(len(set(values(servers, "a.orders", number))) for number in range(PARTITIONS))


def test_nothing_is_lost_whatever_is_killed(tmp_path: Path) -> None:
    with LocalBroker() as a, LocalBroker() as b:
        admin = AdminClient({"bootstrap.servers": a.bootstrap_servers})
        admin.create_topics([NewTopic("orders", PARTITIONS, 1)])["orders"].result(20)
        addresses = {"a": a.bootstrap_servers, "b": b.bootstrap_servers}
        settings = {"a->b.enabled": "true", "b.session.timeout.ms": "6000", "tasks.max": "2"}
        load = Load(a.bootstrap_servers)
        with MirrorProcess(properties_file(tmp_path, addresses, settings)) as mirror:
            with load.running():
                eventually(lambda: copied(b.bootstrap_servers) > ENOUGH)
                for _ in range(KILLS):
                    mirror.kill()
                    load.more()
                    mirror.start()
                    before = load.acknowledged
                    eventually(lambda before=before: copied(b.bootstrap_servers) > before)
                for broker in (b, a):
                    broker.kill()
                    broker.start()
                    load.more()
                for broker in (b, a):
                    broker.pause()
                    time.sleep(1)  # frozen: what is on its way neither fails nor arrives
                    broker.resume()
                    load.more()
                unread_from = consume_some(a.bootstrap_servers, "orders", "readers", ENOUGH)
            eventually(lambda: copied(b.bootstrap_servers) == load.sent)
            offsets = eventually(lambda: translated(b.bootstrap_servers))
            assert mirror.stop() == 0
        for number in range(PARTITIONS):
            source = values(a.bootstrap_servers, "orders", number)
            target = values(b.bootstrap_servers, "a.orders", number)
            check_order(source, target)
            read = {each for each in unread_from if each in set(source)}
            begins = offsets.get(number, 0)
            assert set(source) <= read | set(target[begins:]), "a group that fails over skips some"


def committed(servers: str) -> list[list[int]]:
    """Read what is committed of the copy, by partition; markers of transactions are no records."""
    found: list[list[int]] = [[] for _ in range(PARTITIONS)]
    client = {"bootstrap.servers": servers, "group.id": "x", "isolation.level": "read_committed"}
    for message in whole_topic(client, "a.orders"):
        found[message.partition()].append(int(message.value()))
    return found


def test_every_record_is_copied_once_by_a_mirror_with_transactions(tmp_path: Path) -> None:
    with LocalBroker() as a, LocalBroker() as b:
        admin = AdminClient({"bootstrap.servers": a.bootstrap_servers})
        admin.create_topics([NewTopic("orders", PARTITIONS, 1)])["orders"].result(20)
        source, target = a.bootstrap_servers, b.bootstrap_servers
        settings = {
            "a->b.enabled": "true",
            "b.session.timeout.ms": "6000",
            "tasks.max": "2",
            "exactly.once.source.support": "enabled",
        }
        file = properties_file(tmp_path, {"a": source, "b": target}, settings)

        def copied_count() -> int:
            return sum(map(len, committed(target)))

        load = Load(source)
        with MirrorProcess(file) as mirror:
            with load.running():
                for _ in range(KILLS):
                    before = load.acknowledged + ENOUGH
                    eventually(lambda before=before: copied_count() > before)
                    mirror.kill()
                    load.more()
                    mirror.start()
                consume_some(source, "orders", "readers", ENOUGH)
            eventually(lambda: copied_count() >= load.sent)
            offsets = eventually(lambda: translated(target))
            assert mirror.stop() == 0
            begun = mirror.log().count("task begins its transactions task=MirrorSourceConnector-")
        assert begun > KILLS
        wanted = [values(source, "orders", number) for number in range(PARTITIONS)]
        assert committed(target) == wanted
        # Where the group goes on is a place in the copy, in spite of the markers in it.
        assert sum(offsets.values()) > 0


def translated(servers: str) -> dict[int, int]:
    """Where the group goes on in each partition of the copy."""
    found = RemoteClusterUtils.translate_offsets({"bootstrap.servers": servers}, "a", "readers")
    return {at.partition: each.offset for at, each in found.items()}


def check_order(source: list[int], target: list[int]) -> None:
    """First copies come in the source's order; only a kill repeats, and then without a gap."""
    assert list(dict.fromkeys(target)) == source
    steps = Counter(after - before for before, after in pairwise(target))
    forward = steps.pop(PARTITIONS, 0)
    assert all(step <= 0 for step in steps), "something was left out"
    assert sum(steps.values()) <= KILLS
    assert forward >= len(source) - 1 - KILLS
