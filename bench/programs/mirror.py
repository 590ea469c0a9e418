"""The mirror beside Apache's MirrorMaker 2, between the same two brokers of ours.

`python -m bench mirror --rounds 2 --libs FOLDER`: the mirrors run in turn. Throughput: 1 KB records
in 6 partitions of one topic, written before the mirror starts; timed from the first copy to the
last. CPU is the mirror's own process; its CPU time before the first copy counts in "CPU s in all"
only. Lag: records at 1,000/s with a timestamp each; the lag is a record's age when a consumer of
the copy gets it, after a warm-up of five seconds.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.lib.results import Results
from millstream.launch import program_command, program_environment
from millstream.testing import LocalBroker

TOPIC = "load"
COPY = f"a.{TOPIC}"
PARTITIONS = 6
VALUE = os.urandom(1000)
RATE = 1_000
ONE_NODE = (
    "replication.factor",
    "offset-syncs.topic.replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "offset.storage.replication.factor",
    "config.storage.replication.factor",
    "status.storage.replication.factor",
)
TICKS = os.sysconf("SC_CLK_TCK")


def write_properties(folder: Path, source: str, target: str) -> Path:
    told = dict.fromkeys(ONE_NODE, "1") | {
        "clusters": "a,b",
        "a.bootstrap.servers": source,
        "b.bootstrap.servers": target,
        "a->b.enabled": "true",
        "a->b.topics": TOPIC,
        "refresh.topics.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "listeners": "http://127.0.0.1:0",
    }
    path = folder / "mm2.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    return path


def command(server: str, properties: Path, libs: Path) -> list[str]:
    if server == "millstream":
        return program_command("mirror", str(properties))
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    return ["java", "-Xmx512m", "-cp", f"{libs}/*", main, str(properties)]


@contextmanager
def running(server: str, properties: Path, libs: Path) -> Iterator[int]:
    """Run a mirror; yield its process id."""
    with (properties.parent / f"{server}.log").open("w") as log:
        process = subprocess.Popen(
            command(server, properties, libs), stdout=log, stderr=log, env=program_environment()
        )
    try:
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def load(servers: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": servers, "batch.size": 1_000_000, "linger.ms": 20})
    for number in range(count):
        while True:
            try:
                producer.produce(TOPIC, VALUE, b"%08d" % number, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(60)


def copied(consumer: Consumer) -> int:
    if COPY not in consumer.list_topics(timeout=10).topics:
        return 0
    parts = [TopicPartition(COPY, number) for number in range(PARTITIONS)]
    return sum(consumer.get_watermark_offsets(each, timeout=10)[1] for each in parts)


def throughput(results: Results, server: str, count: int, libs: Path) -> None:
    with pair() as (source, target, folder):
        load(source, count)
        properties = write_properties(folder, source, target)
        watch = Consumer({"bootstrap.servers": target, "group.id": "bench"})
        with running(server, properties, libs) as pid:
            began = time.monotonic()
            while not (first := copied(watch)):
                time.sleep(0.02)
            started, cpu_before = time.monotonic(), cpu_seconds(pid)
            while copied(watch) < count:
                time.sleep(0.05)
            seconds, cpu = time.monotonic() - started, cpu_seconds(pid)
            done, megabytes = count - first, peak_megabytes(pid)
        watch.close()
    results.add("start to first copy, s", server, started - began, lower_is_better=True)
    results.add("records/s", server, done / seconds)
    results.add("MB/s", server, done * len(VALUE) / seconds / 1e6)
    per_core = done / (cpu - cpu_before)
    results.add("records per CPU second, copying", server, per_core)
    results.add("CPU s in all", server, cpu, lower_is_better=True)
    results.add("peak resident, MB", server, megabytes, lower_is_better=True)


def lag(results: Results, server: str, seconds: int, libs: Path) -> None:
    with pair() as (source, target, folder):
        load(source, 600)
        properties = write_properties(folder, source, target)
        consumer = Consumer(
            {"bootstrap.servers": target, "group.id": "bench", "fetch.wait.max.ms": 100}
        )
        with running(server, properties, libs) as pid:
            while copied(consumer) < 600:
                time.sleep(0.1)
            consumer.assign([TopicPartition(COPY, n, 100) for n in range(PARTITIONS)])
            ages = paced(source, consumer, 5 * RATE)  # the warm-up of the JVM
            cpu = cpu_seconds(pid)
            ages = sorted(paced(source, consumer, seconds * RATE))
            used = cpu_seconds(pid) - cpu
        consumer.close()
    at = f"at {RATE:,} records/s"
    results.add(f"lag {at}: p50, ms", server, ages[len(ages) // 2], lower_is_better=True)
    results.add(f"lag {at}: p99, ms", server, ages[len(ages) * 99 // 100], lower_is_better=True)
    results.add(f"CPU {at}, % of a core", server, 100 * used / seconds, lower_is_better=True)


def paced(source: str, consumer: Consumer, count: int) -> list[float]:
    """Write `count` records at the rate, and read them; return the age of each in ms."""
    producer = Producer({"bootstrap.servers": source, "linger.ms": 0})
    began, sent = time.time_ns(), 0
    ages: list[float] = []
    while len(ages) < count:
        due = min(count, (time.time_ns() - began) * RATE // 1_000_000_000 + 1)
        for number in range(sent, due):
            stamp = b"%020d" % time.time_ns()
            producer.produce(TOPIC, stamp + VALUE[20:], partition=number % PARTITIONS)
        sent = max(sent, due)
        producer.poll(0)
        message = consumer.poll(0.0005)
        while message is not None:
            if message.error() is None:
                stamp = message.value() or b""
                ages.append((time.time_ns() - int(stamp[:20])) / 1e6)
            message = consumer.poll(0)
    return ages


@contextmanager
def pair() -> Iterator[tuple[str, str, Path]]:
    with (
        LocalBroker(is_testing=False) as a,
        LocalBroker(is_testing=False) as b,
        tempfile.TemporaryDirectory() as folder,
    ):
        admin = AdminClient({"bootstrap.servers": a.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(20)
        yield a.bootstrap_servers, b.bootstrap_servers, Path(folder)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench mirror", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--libs", type=Path, help="folder with connect-mirror and what it needs")
    options = parser.parse_args(arguments)
    servers = ["millstream"] if options.libs is None else ["millstream", "kafka"]
    results = Results()
    for number in range(options.rounds):
        for server in servers:
            print(f"round {number + 1}: {server}", file=sys.stderr, flush=True)
            throughput(results, server, options.records, options.libs)
            lag(results, server, options.seconds, options.libs)
    print("\n".join(results.rows()))
    return 0
