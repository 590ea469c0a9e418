"""The costs of a cluster of three: topics, a joining broker, memory of the metadata, failovers.

`python -m bench cluster [topics | joining | failover]`, all without a name. Nodes are real
processes without links between them. Apache Kafka's three nodes create the same topics if its jars
and Java are installed.
"""

import os
import signal
import statistics
import sys
import time
from functools import partial
from pathlib import Path

import confluent_kafka.admin

from bench.lib.node_clusters import KafkaCluster, admin_client
from bench.lib.servers import PAGE_BYTES, find_kafka
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.testing import LocalCluster
from tests.lib.raw_kafka import RawConnection
from tests.lib.waiting import until

TOPICS = 1_000
PARTITIONS = 10
BATCH = 100
FAILOVERS = 20


def main(arguments: list[str]) -> int:
    """Measure and print."""
    parts = {"topics": measure_topics, "joining": measure_joining, "failover": measure_failover}
    for name in arguments or parts:
        if name not in parts:
            print(f"usage: python -m bench cluster [{' | '.join(parts)}]", file=sys.stderr)
            return 2
        parts[name]()
    return 0


# Topics.


def measure_topics() -> None:
    """Time the creation of many topics until every broker has them in its metadata."""
    with LocalCluster(has_links=False, is_testing=False) as cluster:
        addresses = [cluster.address(one) for one in cluster.broker_ids]
        ours = [create_one_by_one(addresses), create_in_batches(addresses)]
    print(f"{TOPICS} topics x {PARTITIONS} partitions, s: one by one, {BATCH} in a request")
    print(f"millstream: {ours[0]:.2f} {ours[1]:.2f}", flush=True)
    libs = find_kafka()
    if libs is None:
        print("Apache Kafka is not here")
        return
    with KafkaCluster(libs) as kafka:
        theirs = [create_one_by_one(kafka.addresses), create_in_batches(kafka.addresses)]
    print(f"Apache Kafka: {theirs[0]:.2f} {theirs[1]:.2f}")
    print(f"ratio: {theirs[0] / ours[0]:.2f}x {theirs[1] / ours[1]:.2f}x")


def create_one_by_one(addresses: list[str]) -> float:
    """Create topics, one request after the other on one connection."""
    started = time.monotonic()
    with RawConnection(addresses[0], 60) as connection:
        for number in range(TOPICS):
            create(connection, f"single-{number}", PARTITIONS)
    wait_until_all_know(addresses, "single-")
    return time.monotonic() - started


def create_in_batches(addresses: list[str]) -> float:
    """Create the same count of topics with a stock client, a hundred in a request."""
    admin = admin_client(addresses[0])
    started = time.monotonic()
    for first in range(0, TOPICS, BATCH):
        new = [
            confluent_kafka.admin.NewTopic(f"batch-{number}", PARTITIONS, 1)
            for number in range(first, first + BATCH)
        ]
        for future in admin.create_topics(new, operation_timeout=60, request_timeout=90).values():
            future.result(90)
    wait_until_all_know(addresses, "batch-")
    return time.monotonic() - started


def create(connection: RawConnection, name: str, partitions: int) -> None:
    """Create one topic; fail on an error code."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    answer = connection.ask(ApiKey.CREATE_TOPICS, 7, request)
    (result,) = answer.topics  # type: ignore[attr-defined]
    assert result.error_code == 0, result


def wait_until_all_know(addresses: list[str], prefix: str) -> None:
    """Wait until every broker lists all topics, each with a leader for every partition."""
    for address in addresses:
        until(partial(knows_all, admin_client(address), prefix))


def knows_all(admin: confluent_kafka.admin.AdminClient, prefix: str) -> bool:
    """Return True if a broker lists all topics, with a leader of every partition."""
    found = admin.list_topics(timeout=60).topics
    known = [topic for name, topic in found.items() if name.startswith(prefix)]
    return len(known) == TOPICS and all(
        partition.leader >= 0 for topic in known for partition in topic.partitions.values()
    )


# A broker that joins.


def measure_joining() -> None:
    """Time a joining broker, and measure the memory that the metadata adds to it."""
    with LocalCluster(has_links=False, is_testing=False) as cluster:
        empty_bytes = resident_bytes(cluster.node(cluster.add_broker()).pid)
        addresses = [cluster.address(one) for one in cluster.broker_ids]
        with RawConnection(addresses[0], 60) as connection:
            for number in range(TOPICS):
                create(connection, f"single-{number}", PARTITIONS)
        wait_until_all_know(addresses, "single-")
        started = time.monotonic()
        joined = cluster.add_broker()
        ready = time.monotonic() - started
        wait_until_all_know([cluster.address(joined)], "single-")
        full_bytes = resident_bytes(cluster.node(joined).pid)
        leader_bytes = resident_bytes(cluster.node(cluster.active_controller()).pid)
    partitions = TOPICS * PARTITIONS
    print(f"broker joining with {partitions} partitions in the log, ready after {ready:.2f} s")
    megabytes = [size / 1e6 for size in (empty_bytes, full_bytes, leader_bytes)]
    print(
        f"resident, MB: {megabytes[0]:.1f} without topics, {megabytes[1]:.1f} with them, "
        f"{megabytes[2]:.1f} the active controller, which also leads a quarter of them"
    )
    print(f"the metadata's part, MB: {megabytes[1] - megabytes[0]:.1f}", flush=True)


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


# Failovers.


def measure_failover() -> None:
    """Time from the end of the active controller to the next confirmed creation of a topic."""
    with LocalCluster(has_links=False, is_testing=False) as cluster:
        for name, end in (("kill -9", signal.SIGKILL), ("SIGTERM", signal.SIGTERM)):
            times = [fail_over(cluster, end, f"{end.name}-{turn}") for turn in range(FAILOVERS)]
            known = statistics.median(known for known, _ in times)
            confirmed = sorted(confirmed for _, confirmed in times)
            print(
                f"{name}: new leader known after {known:.2f} s, next topic confirmed after "
                f"{statistics.median(confirmed):.2f} s ({confirmed[0]:.2f}..{confirmed[-1]:.2f}), "
                f"medians of {FAILOVERS}",
                flush=True,
            )


def fail_over(cluster: LocalCluster, end: signal.Signals, topic: str) -> tuple[float, float]:
    """End the active controller and start it again; return two times in seconds."""
    old = cluster.active_controller()
    survivor = next(one for one in cluster.broker_ids if one != old)
    # As with Kafka's tools, the client connects before the fault, so only the cluster is measured.
    with RawConnection(cluster.address(survivor), 60) as connection:
        create(connection, f"before-{topic}", 1)
        started = time.monotonic()
        os.kill(cluster.node(old).pid, end)
        while cluster.active_controller() == old:
            time.sleep(0.002)  # a clean stop hands over while the process still runs
        known = time.monotonic() - started
        create(connection, f"after-{topic}", 1)
        confirmed = time.monotonic() - started
    cluster.stop(old)
    cluster.start(old)
    return known, confirmed
