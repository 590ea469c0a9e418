"""The longest pause of an acks=all producer after the failure of a partition's leader.

`python -m bench failover`: kill -9, SIGTERM or SIGSTOP of the leader, round after round, ours and
Apache Kafka's at default settings. A stock producer at its own defaults (acks=all) sends 200
records a second to one partition, open loop. A gap is the longest time between two acknowledgements
around the fault. With one replica no other node can become the leader: then the node is restarted
at once, and the gap is the time of that. The faults are spread evenly over a second of the client's
life, because librdkafka does some work once a second.

A frozen leader (SIGSTOP) keeps the records that were sent to it until the client's socket times
out, also after the election; the time until the election is printed too.
"""

import argparse
import signal
import statistics
import threading
import time
from itertools import pairwise
from typing import NamedTuple

import confluent_kafka

from bench.lib.node_clusters import NODE_IDS, SYSTEMS, NodeCluster, admin_client, makers
from bench.lib.servers import find_kafka
from tests.lib.waiting import until

RATE = 200
BEFORE_SECONDS = 2.0
PATIENCE_SECONDS = 180.0
TOPIC = "failover"
FAULTS = {
    "kill -9": signal.SIGKILL,
    "SIGTERM": signal.SIGTERM,
    "SIGSTOP": signal.SIGSTOP,
}


class Load(threading.Thread):
    """Sends records at a fixed rate, and keeps the times of their acknowledgements."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="load", daemon=True)
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0}
        )
        self._is_over = threading.Event()
        # The times of sending and of the acknowledgement, in the order of the acknowledgements.
        self.acknowledged: list[tuple[float, float]] = []

    def run(self) -> None:
        """Send until `stop`."""
        due = time.monotonic()
        while not self._is_over.is_set():
            self._send(time.monotonic())
            due += 1 / RATE
            # `poll` returns after a callback.
            while (left := due - time.monotonic()) > 0:
                self._producer.poll(left)
        self._producer.flush(10)

    def stop(self) -> None:
        """Stop sending."""
        self._is_over.set()
        self.join()

    def has_acknowledged_since(self, moment: float) -> bool:
        """Return True if a record sent after a moment is acknowledged."""
        return bool(self.acknowledged) and self.acknowledged[-1][0] > moment

    def gap_seconds(self, since: float) -> float:
        """Return the longest time without an acknowledgement after a moment."""
        times = [since, *(at for _, at in self.acknowledged if at >= since)]
        return max(after - before for before, after in pairwise(times))

    def _send(self, sent: float) -> None:
        def delivered(error: object, _: object) -> None:
            if error is None:
                self.acknowledged.append((sent, time.monotonic()))

        self._producer.produce(TOPIC, b"x" * 100, on_delivery=delivered)


class Failover(NamedTuple):
    """The times after the failure of a leader, in seconds."""

    gap: float
    next_leader: float | None
    """The time until the other nodes had elected a leader; None if it was not measured."""


def fail_over(
    cluster: NodeCluster, fault: signal.Signals, replication_factor: int, phase: float
) -> Failover:
    """Stop the leader and start it again; return the times."""
    cluster.wait_until_whole(TOPIC)
    (partition,) = cluster.partitions(TOPIC)
    leader = partition.leader
    load = Load(cluster.bootstrap)
    load.start()
    try:
        until(lambda: load.has_acknowledged_since(0))
        time.sleep(BEFORE_SECONDS + phase)  # the load becomes steady
        began = time.monotonic()
        cluster.signal(leader, fault)
        if replication_factor == 1:
            bring_back(cluster, leader, fault)
        elected = None
        if fault == signal.SIGSTOP and replication_factor > 1:
            wait_for_another(cluster, leader)
            elected = time.monotonic() - began
        until(lambda: load.has_acknowledged_since(began), PATIENCE_SECONDS)
        gap = load.gap_seconds(began)
        if replication_factor > 1:
            bring_back(cluster, leader, fault)
    finally:
        load.stop()
    return Failover(gap, elected)


def wait_for_another(cluster: NodeCluster, leader: int) -> None:
    """Wait until the other nodes have elected a leader."""
    addresses = zip(NODE_IDS, cluster.addresses, strict=True)
    others = admin_client(",".join(each for node_id, each in addresses if node_id != leader))

    def is_led() -> bool:
        partition = others.list_topics(TOPIC, timeout=5).topics[TOPIC].partitions[0]
        return partition.leader not in {-1, leader}

    until(is_led, PATIENCE_SECONDS)


def bring_back(cluster: NodeCluster, node_id: int, fault: signal.Signals) -> None:
    """Continue a frozen node, or start it again."""
    if fault == signal.SIGSTOP:
        cluster.signal(node_id, signal.SIGCONT)
    else:
        cluster.wait_until_down(node_id)
        cluster.start(node_id)


def row(name: str, seconds: list[float]) -> str:
    """Return a row of the table."""
    return f"| {name} | {statistics.median(seconds):.3f} | {max(seconds):.3f} |"


def main(arguments: list[str]) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--replication-factor", type=int, default=3)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=list(FAULTS))
    options = parser.parse_args(arguments)
    rows = []
    libraries = find_kafka() if "kafka" in options.systems else None
    for make in makers(libraries, options.replication_factor, options.systems):
        with make() as cluster:
            cluster.create_topic(TOPIC, 1, options.replication_factor)
            for name in options.faults:
                gaps, elected = [], []
                for number in range(options.rounds):
                    phase = (number + 0.5) / options.rounds
                    found = fail_over(cluster, FAULTS[name], options.replication_factor, phase)
                    print(f"{cluster.name}, {name}, {number + 1}: {found.gap:.3f} s", flush=True)
                    gaps.append(found.gap)
                    elected += [] if found.next_leader is None else [found.next_leader]
                rows.append(row(f"{cluster.name}, {name}", gaps))
                if elected:
                    rows.append(row(f"{cluster.name}, {name}: until another leads", elected))
    print(f"| gap, s; {options.rounds} rounds | median | worst |\n|---|---|---|")
    print("\n".join(rows))
    return 0
