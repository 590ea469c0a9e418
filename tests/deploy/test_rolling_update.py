"""A rolling update as Kubernetes does it: SIGTERM, start, wait for the probe, the next one."""

import itertools
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Message, Producer

from millstream.testing import LocalCluster
from tests.deploy.test_kubernetes import of_kind

pytestmark = pytest.mark.slow

WAIT_SECONDS = 60


def probe() -> str:
    """Return the path of the readiness probe of the manifest."""
    pod = of_kind("StatefulSet")["broker"]["spec"]["template"]["spec"]
    path: str = pod["containers"][0]["readinessProbe"]["httpGet"]["path"]
    return path


def answer(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answered:
            return int(answered.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


class Traffic:
    """Produces with acks=all until it is stopped."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.errors: list[KafkaError] = []
        self.acknowledged_at: list[float] = []
        self.sent = 0
        self._is_stopped = threading.Event()
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "acks": "all", "linger.ms": 0}
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_stopped.wait(0.01):
            self._producer.produce("orders", str(self.sent), on_delivery=self._delivered)
            self.sent += 1
            self._producer.poll(0)
        self._producer.flush(WAIT_SECONDS)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error)
        self.acknowledged_at.append(time.monotonic())

    def stop(self) -> float:
        """End it; return the longest time in which nothing was acknowledged, in seconds."""
        self._is_stopped.set()
        self._thread.join()
        times = self.acknowledged_at
        return max(later - earlier for earlier, later in itertools.pairwise(times))


def test_every_broker_is_replaced_and_a_producer_sees_no_error(
    record_property: Callable[[str, object], None],
) -> None:
    with LocalCluster(brokers=3) as cluster:
        cluster.create_topic("orders", 6, replication_factor=3)
        traffic = Traffic(cluster.bootstrap_servers)
        try:
            for node_id in cluster.node_ids:
                cluster.stop(node_id)
                # The next pod waits: the others are in sync, this one is not there.
                assert answer(cluster.node(node_id).http_url + probe()) == 0
                cluster.start(node_id)
                url = cluster.node(node_id).http_url + probe()
                wait_until(lambda url=url: answer(url) == 200, f"{node_id} is not in sync")
        finally:
            longest = traffic.stop()
        record_property("longest_gap_seconds", round(longest, 3))
        print(f"{traffic.sent} records, longest gap {longest:.3f} s")
        assert traffic.errors == []
        assert len(traffic.acknowledged_at) == traffic.sent
        records = cluster.records("orders")
        assert len({record.raw_value for record in records}) == traffic.sent
