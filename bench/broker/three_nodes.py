"""Three nodes of ours and of Apache Kafka, in one run: interleaved rounds, medians, ratios.

`python -m bench side-by-side --nodes 3`. Every record of an idempotent producer is acknowledged by
the whole ISR (acks=all); topics have six partitions. The C client and the three nodes share the
machine's cores.
"""

import argparse
import resource
import time
from dataclasses import dataclass
from pathlib import Path

from bench.lib.c_client import build_client, client
from bench.lib.cell_begin import begin_cell
from bench.lib.node_clusters import NodeCluster, makers
from bench.lib.results import Results
from bench.lib.servers import ROOT, find_kafka

PARTITIONS = 6
IDLE_SECONDS = 10.0
LATENCY_RATE, LATENCY_SECONDS = 1_000, 8
SAFE = ("acks=all", "enable.idempotence=true")


@dataclass(frozen=True, slots=True)
class Produce:
    """One produce cell; Apache Kafka takes about ten seconds for its count."""

    name: str
    count: int
    size: int
    settings: tuple[str, ...] = ()


CELLS = (
    Produce("1 KB, 16 KB batches", 100_000, 1000, ("batch.size=16384", "linger.ms=5")),
    Produce(
        "1 KB, 1 MB batches",
        500_000,
        1000,
        ("batch.size=1000000", "batch.num.messages=100000", "linger.ms=20"),
    ),
    Produce("100 B, client defaults", 3_000_000, 100),
)


def measure(cluster: NodeCluster, results: Results, options: argparse.Namespace) -> None:
    """Measure one round of every cell on a new cluster."""
    cells: list[str] = options.cells
    if not cells or "idle" in cells:
        measure_idle(cluster, results)
    for number, cell in enumerate(CELLS):
        if not cells or any(wanted in cell.name for wanted in cells):
            cluster.create_topic(f"produce-{number}", PARTITIONS, options.replication_factor)
            measure_produce(cluster, results, cell, f"produce-{number}", options.scale)
    if not cells or "latency" in cells:
        cluster.create_topic("latency", PARTITIONS, options.replication_factor)
        measure_latency(cluster, results)
    megabytes = cluster.resident_bytes() / 1e6
    results.add("resident after load, MB", cluster.name, megabytes, lower_is_better=True)


def measure_idle(cluster: NodeCluster, results: Results) -> None:
    """Measure the CPU time and memory of three nodes without requests."""
    before = cluster.cpu_seconds()
    time.sleep(IDLE_SECONDS)
    used = 100 * (cluster.cpu_seconds() - before) / IDLE_SECONDS
    results.add("idle CPU, % of a core", cluster.name, used, lower_is_better=True)
    megabytes = cluster.resident_bytes() / 1e6
    results.add("idle resident, MB", cluster.name, megabytes, lower_is_better=True)


def measure_produce(
    cluster: NodeCluster, results: Results, cell: Produce, topic: str, scale: float
) -> None:
    """Measure one produce cell, after a warm-up of a tenth."""
    count, where = int(cell.count * scale), (cluster.bootstrap, topic)
    client("produce", *where, count // 10, cell.size, *SAFE, *cell.settings)
    begin_cell()
    before, client_before = cluster.cpu_seconds(), client_cpu_seconds()
    done = client("produce", *where, count, cell.size, *SAFE, *cell.settings)
    cpu, client_cpu = cluster.cpu_seconds() - before, client_cpu_seconds() - client_before
    rate = done["records"] / done["seconds"]
    results.add(f"{cell.name}: records/s", cluster.name, rate)
    results.add(f"{cell.name}: MB/s", cluster.name, rate * cell.size / 1e6)
    name = f"{cell.name}: CPU s of the nodes per M"
    results.add(name, cluster.name, 1e6 * cpu / done["records"], lower_is_better=True)
    name = f"{cell.name}: CPU s of the client per M"
    results.add(name, cluster.name, 1e6 * client_cpu / done["records"], lower_is_better=True)


def client_cpu_seconds() -> float:
    """Return the CPU time of all ended child processes: the clients, for the nodes still run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure_latency(cluster: NodeCluster, results: Results) -> None:
    """Measure the time from a record's due time to its arrival at a consumer."""
    where, settings = (cluster.bootstrap, "latency"), (*SAFE, "linger.ms=0")
    client("latency", *where, LATENCY_RATE, 3, 100, *settings)
    begin_cell()
    done = client("latency", *where, LATENCY_RATE, LATENCY_SECONDS, 100, *settings)
    for percentile in ("p50", "p99"):
        name = f"end to end 100 B at {LATENCY_RATE:,}/s: {percentile}, ms"
        results.add(name, cluster.name, done[f"{percentile}_ms"], lower_is_better=True)


def main(options: argparse.Namespace) -> int:
    """Measure, show progress, print the table."""
    build_client()
    Path(ROOT / "build").mkdir(exist_ok=True)
    libraries = None if options.ours_only else find_kafka()
    systems = {"millstream", "kafka"}
    systems -= {"kafka"} if options.ours_only else set()
    systems -= {"millstream"} if options.theirs_only else set()
    results = Results()
    for number in range(options.rounds):
        for make in makers(libraries, options.replication_factor, systems):
            print(f"round {number + 1} of {options.rounds}", flush=True)
            with make() as cluster:
                measure(cluster, results, options)
    print("\n".join(results.rows()))
    return 0
