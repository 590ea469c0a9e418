"""Our broker and Apache Kafka, in one run: interleaved rounds, medians, ratios.

One node each; `--nodes 3` measures three (`three_nodes.py`).
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka.admin

from bench.broker import three_nodes
from bench.lib.c_client import build_client, client
from bench.lib.cell_begin import begin_cell
from bench.lib.first_record import wait_for_first_record
from bench.lib.results import Results
from bench.lib.servers import ROOT, ApacheKafka, Millstream, Server, find_kafka

IDLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Produce:
    """One produce cell: records of one size with client settings."""

    name: str
    count: int
    size: int
    settings: tuple[str, ...]


PRODUCE_CELLS = (
    Produce("produce 100 B, client defaults, acks=1", 3_000_000, 100, ("acks=1",)),
    Produce(
        "produce 1 KB, 16 KB batches, linger 5, acks=1",
        300_000,
        1000,
        ("acks=1", "batch.size=16384", "linger.ms=5"),
    ),
    Produce(
        "produce 1 KB, 1 MB batches, acks=1",
        1_000_000,
        1000,
        ("acks=1", "batch.size=1000000", "batch.num.messages=100000", "linger.ms=20"),
    ),
    Produce(
        "produce 1 KB, lz4, 128 KB batches",
        1_000_000,
        1000,
        ("acks=1", "batch.size=131072", "linger.ms=5", "compression.codec=lz4"),
    ),
    Produce(
        "produce 1 KB, idempotent, acks=all, 128 KB batches",
        500_000,
        1000,
        ("acks=all", "enable.idempotence=true", "batch.size=131072", "linger.ms=5"),
    ),
    Produce(
        "produce 100 B, 1 record a request, 50 in flight",
        100_000,
        100,
        ("acks=1", "linger.ms=0", "batch.num.messages=1", "max.in.flight=50"),
    ),
)
LATENCY_RATES = (1_000, 10_000)
LATENCY_SECONDS = 8


def create_topic(server: Server, topic: str, partitions: int = 1) -> None:
    """Create a topic and wait until it exists."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": server.bootstrap})
    wanted = confluent_kafka.admin.NewTopic(topic, partitions, 1)
    admin.create_topics([wanted])[topic].result(30)


def measure_start(make: Callable[[], Server], results: Results) -> None:
    """Measure from the start of the process, in a prepared folder, to the first record."""
    with make() as server:
        started = server.started_at
        wait_for_first_record(server.port, 60)
        results.add(
            "start to first acknowledged record, s",
            server.name,
            time.monotonic() - started,
            lower_is_better=True,
        )


def measure_server(server: Server, results: Results, round_number: int, cells: list[str]) -> None:
    """Measure one round of every cell on a new server."""
    wait_for_first_record(server.port, 60)
    if not cells or "idle" in cells:
        measure_idle(server, results)
    for cell in PRODUCE_CELLS:
        if not cells or any(wanted in cell.name for wanted in cells):
            measure_produce(server, results, cell, f"produce-{round_number}")
    if not cells or "consume" in cells:
        measure_consume(server, results)
    for rate in LATENCY_RATES:
        if not cells or "latency" in cells:
            measure_latency(server, results, rate)
    results.add(
        "resident after load, MB",
        server.name,
        server.resident_bytes() / 1e6,
        lower_is_better=True,
    )


def measure_idle(server: Server, results: Results) -> None:
    """Measure the CPU time and memory of a server without requests."""
    before = server.cpu_seconds()
    time.sleep(IDLE_SECONDS)
    used = 100 * (server.cpu_seconds() - before) / IDLE_SECONDS
    results.add("idle CPU, % of a core", server.name, used, lower_is_better=True)
    results.add(
        "idle resident, MB", server.name, server.resident_bytes() / 1e6, lower_is_better=True
    )


def measure_produce(server: Server, results: Results, cell: Produce, prefix: str) -> None:
    """Measure one produce cell, after a warm-up of a tenth."""
    topic = f"{prefix}-{PRODUCE_CELLS.index(cell)}"
    create_topic(server, topic)
    client("produce", server.bootstrap, topic, cell.count // 10, cell.size, *cell.settings)
    begin_cell()
    before = server.cpu_seconds()
    done = client("produce", server.bootstrap, topic, cell.count, cell.size, *cell.settings)
    cpu = server.cpu_seconds() - before
    results.add(f"{cell.name}: records/s", server.name, done["records"] / done["seconds"])
    results.add(
        f"{cell.name}: server CPU s per M",
        server.name,
        1e6 * cpu / done["records"],
        lower_is_better=True,
    )


def measure_consume(server: Server, results: Results) -> None:
    """Measure the consumption of the records just produced, from the page cache."""
    count = 1_000_000
    create_topic(server, "consume")
    client("produce", server.bootstrap, "consume", count, 1000, "batch.size=131072", "linger.ms=5")
    before = server.cpu_seconds()
    done = client("consume", server.bootstrap, "consume", count)
    cpu = server.cpu_seconds() - before
    name = "consume 1 KB from page cache"
    results.add(f"{name}: records/s", server.name, done["records"] / done["seconds"])
    results.add(f"{name}: server CPU s per M", server.name, 1e6 * cpu / count, lower_is_better=True)


def measure_latency(server: Server, results: Results, rate: int) -> None:
    """Measure the time from a record's due time to its arrival at a consumer."""
    topic = f"latency-{rate}"
    create_topic(server, topic)
    settings = ("acks=1", "linger.ms=0")
    client("latency", server.bootstrap, topic, rate, 3, 100, *settings)
    begin_cell()
    done = client("latency", server.bootstrap, topic, rate, LATENCY_SECONDS, 100, *settings)
    for percentile in ("p50_ms", "p99_ms", "p999_ms"):
        results.add(
            f"end to end 100 B at {rate:,}/s: {percentile.removesuffix('_ms')}, ms",
            server.name,
            done[percentile],
            lower_is_better=True,
        )


def main(arguments: list[str]) -> int:
    """Measure, show progress, print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench side-by-side", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--nodes", type=int, default=1, choices=(1, 3))
    parser.add_argument("--replication-factor", type=int, default=3, help="with --nodes 3")
    parser.add_argument("--theirs-only", action="store_true", help="with --nodes 3")
    parser.add_argument("--scale", type=float, default=1.0, help="with --nodes 3: of the counts")
    parser.add_argument("cells", nargs="*", help="only cells whose name contains one of these")
    parsed = parser.parse_args(arguments)
    if parsed.nodes == 3:
        return three_nodes.main(parsed)
    build_client()
    Path(ROOT / "build").mkdir(exist_ok=True)
    libraries = None if parsed.ours_only else find_kafka()
    makers: list[Callable[[], Server]] = [Millstream]
    if libraries is None:
        print("Apache Kafka is not measured: there is no Java here, or no Maven for its jars.")
    else:
        found = libraries
        makers.append(lambda: ApacheKafka(found))
    results = Results()
    for number in range(parsed.rounds):
        for make in makers:
            print(f"round {number + 1} of {parsed.rounds}", flush=True)
            if not parsed.cells or "start" in parsed.cells:
                measure_start(make, results)
            with make() as server:
                measure_server(server, results, number, parsed.cells)
    print("\n".join(results.rows()))
    return 0
