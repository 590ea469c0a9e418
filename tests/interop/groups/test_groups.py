"""Two members share a group and survive one's death; static members; cooperative rebalancing."""

import subprocess
import sys
import time
from collections.abc import Callable

import confluent_kafka
import pytest

from millstream.testing import LocalBroker

pytestmark = pytest.mark.interop

MEMBER = """
import sys, confluent_kafka
consumer = confluent_kafka.Consumer({
    "bootstrap.servers": sys.argv[1], "group.id": "group", "auto.offset.reset": "earliest",
    "session.timeout.ms": 6000, "heartbeat.interval.ms": 500,
    "partition.assignment.strategy": sys.argv[2],
})
consumer.subscribe(["orders"], on_assign=lambda c, p: print("assigned", len(p), flush=True))
while True:
    consumer.poll(0.1)
"""


@pytest.fixture
def broker() -> object:
    with LocalBroker(num_partitions=4) as started:
        yield started


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"


def member(broker: LocalBroker, strategy: str, **more: object) -> confluent_kafka.Consumer:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "group",
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "partition.assignment.strategy": strategy,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )
    consumer.subscribe(["orders"])
    return consumer


def owned(*consumers: confluent_kafka.Consumer) -> list[int]:
    for consumer in consumers:
        consumer.poll(0.05)
    return sorted(
        partition.partition for consumer in consumers for partition in consumer.assignment()
    )


def make_topic(broker: LocalBroker) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("orders", b"first")
    assert producer.flush(10) == 0


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_two_members_share_and_the_survivor_takes_over(broker: LocalBroker, strategy: str) -> None:
    make_topic(broker)
    survivor = member(broker, strategy)
    wait_until(lambda: owned(survivor) == [0, 1, 2, 3])
    other = subprocess.Popen(
        [sys.executable, "-c", MEMBER, broker.bootstrap_servers, strategy],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: len(owned(survivor)) == 2)
    finally:
        other.kill()
        other.communicate()
    wait_until(lambda: owned(survivor) == [0, 1, 2, 3])
    survivor.close()


def test_a_static_member_that_comes_back_in_time_causes_no_rebalance(
    broker: LocalBroker,
) -> None:
    make_topic(broker)
    rebalances: list[int] = []
    watcher = member(broker, "range", group_instance_id="watcher")
    watcher.subscribe(["orders"], on_assign=lambda _, parts: rebalances.append(len(parts)))
    restarted = member(broker, "range", group_instance_id="restarted")
    wait_until(lambda: owned(watcher, restarted) == [0, 1, 2, 3] and len(rebalances) > 0)
    before = owned(restarted)
    count = len(rebalances)
    restarted.close()  # a static member does not leave when it closes
    again = member(broker, "range", group_instance_id="restarted")
    wait_until(lambda: owned(again) == before)
    owned(watcher)
    assert len(rebalances) == count
    again.close()
    watcher.close()
