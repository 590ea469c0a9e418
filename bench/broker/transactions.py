"""Transactions, ours beside Apache Kafka's: transactions a second, and the latency of a commit.

`python -m bench transactions [--rounds 3]`. One node each, a new one for every round, ours and
theirs in turn. Producers of the C client commit one transaction after the other: one producer
alone, then several at once. A commit is timed from the call to its return, which includes the write
of the last records.
"""

import argparse
import os

from bench.broker.side_by_side import create_topic
from bench.lib.c_client import build_client, client
from bench.lib.first_record import wait_for_first_record
from bench.lib.results import Results
from bench.lib.servers import ApacheKafka, Millstream, Server, find_kafka

PARTITIONS = 6
PRODUCERS = (1, 8)
RECORDS = (1, 100, 1_000)
RECORD_BYTES = 100
SECONDS = 3.0


def measure(server: Server, results: Results) -> None:
    """Measure every cell once."""
    wait_for_first_record(server.port, 60)
    for producers in PRODUCERS:
        for records in RECORDS:
            measure_cell(server, results, producers, records)


def measure_cell(server: Server, results: Results, producers: int, records: int) -> None:
    """Let `producers` producers commit transactions of `records` records each."""
    topic = f"of-{producers}-{records}"
    create_topic(server, topic, PARTITIONS)
    before = server.cpu_seconds()
    done = client(
        "transactions", server.bootstrap, topic, SECONDS, producers, records, RECORD_BYTES
    )
    cpu_ms = 1e3 * (server.cpu_seconds() - before) / done["transactions"]
    rate = done["transactions"] / SECONDS
    cell = f"{records:,} record{'s' * (records > 1)}, {producers} at once"
    results.add(f"{cell}: transactions/s", server.name, rate)
    for percentile in ("p50", "p99"):
        name, value = f"{cell}: commit {percentile}, ms", done[f"{percentile}_ms"]
        results.add(name, server.name, value, lower_is_better=True)
    told = f"{rate:.0f}/s, p50 {done['p50_ms']} ms, p99 {done['p99_ms']} ms"
    print(f"  {server.name} {cell}: {told}, CPU {cpu_ms:.2f} ms", flush=True)


def main(arguments: list[str]) -> int:
    """Measure in turn, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench transactions")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ours-only", action="store_true")
    options = parser.parse_args(arguments)
    build_client()
    libraries = None if options.ours_only else find_kafka()
    results = Results()
    print(f"processors: {os.cpu_count()}")
    for round_number in range(options.rounds):
        print(f"round {round_number + 1}", flush=True)
        with Millstream() as server:
            measure(server, results)
        if libraries is not None:
            with ApacheKafka(libraries) as server:
                measure(server, results)
    print("\n".join(results.rows()))
    return 0
