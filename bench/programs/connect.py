"""Connect's workers beside Apache Kafka's own, on the same broker of ours.

`python -m bench connect --rounds 2 --libs FOLDER`: the workers run in turn, each alone with a
worker process of its own. Files are copied into a topic and a topic into a file, by the connectors
that both have, with strings and with JSON that carries its schema; with one task each. The time
starts with the first record. CPU is that of the worker's process and its children, from the first
record on. Apache Kafka has no connector for a table of a database, so that is measured of ours
alone.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.lib.results import Results
from millstream.launch import program_command, program_environment
from millstream.processes.cluster_layout import free_ports
from millstream.testing import LocalBroker
from tests.lib.process_tree import processes_below

LINE = "x" * 100
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
CONVERTERS = {"strings": STRINGS, "JSON with schemas": JSON}
TICKS = os.sysconf("SC_CLK_TCK")
START_SECONDS = 60
MEGA = 1_000_000


@dataclass(frozen=True)
class Running:
    """A worker's process, and the URL of its REST interface."""

    pid: int
    url: str

    def put(self, name: str, **config: str) -> None:
        told = {key.replace("__", "."): value for key, value in config.items()}
        request = urllib.request.Request(
            f"{self.url}/connectors/{name}/config",
            json.dumps(told).encode(),
            {"Content-Type": "application/json"},
            method="PUT",
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/connectors", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def cpu_seconds(self) -> float:
        return sum(map(cpu_seconds, [self.pid, *processes_below(self.pid)]))

    def megabytes(self) -> float:
        """Return the resident memory."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def worker(server: str, folder: Path, broker: str, libs: Path, **more: str) -> Iterator[Running]:
    url = f"http://127.0.0.1:{next(free_ports())}"
    told = {
        "bootstrap.servers": broker,
        "listeners": url,
        "key.converter": STRINGS,
        "value.converter": STRINGS,
        "offset.storage.file.filename": str(folder / "offsets"),
        "offset.flush.interval.ms": "1000",
        "file.allowed.directories": str(folder),
        **{key.replace("__", "."): value for key, value in more.items()},
    }
    if server == "kafka":
        told["plugin.discovery"] = "service_load"
    properties = folder / "worker.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in told.items()))
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    command = ["java", "-Xmx512m", "-cp", f"{libs}/*", main, str(properties)]
    if server == "millstream":
        command = program_command("connect", "start", str(properties))
    with (folder / "worker.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=program_environment())
    try:
        running = Running(process.pid, url)
        wait_for(running.is_ready)
        yield running
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(condition: Callable[[], bool], seconds: float = START_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it did not happen")
        time.sleep(0.02)


class Ends:
    """The end offsets of a topic."""

    def __init__(self, servers: str, topic: str, partitions: int = 1) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "bench", "log_level": 0}
        )
        self._parts = [TopicPartition(topic, number) for number in range(partitions)]

    def __call__(self) -> int:
        try:
            ends = [self._consumer.get_watermark_offsets(each, timeout=10) for each in self._parts]
        except KafkaException:
            return 0
        return sum(end for _, end in ends)


def timed_lines(
    results: Results, server: str, cell: str, running: Running, done: Callable[[], int], count: int
) -> None:
    """Measure records, and the bytes of their lines: no schema, newline or overhead of a record."""
    per_second, per_cpu_second = timed(results, server, cell, running, done, count)
    results.add(f"{cell}: MB/s", server, per_second * len(LINE) / MEGA)
    results.add(f"{cell}: MB per CPU second", server, per_cpu_second * len(LINE) / MEGA)


def timed(
    results: Results, server: str, cell: str, running: Running, done: Callable[[], int], count: int
) -> tuple[float, float]:
    """Measure from the first record until 99 in 100 are there: the last ones wait for a commit.

    Return records a second, and records a CPU second.
    """
    wait_for(lambda: done() > 0)
    first, began, cpu = done(), time.monotonic(), running.cpu_seconds()
    wait_for(lambda: done() >= count * 99 // 100, 300)
    records = done() - first
    seconds, used = time.monotonic() - began, running.cpu_seconds() - cpu
    results.add(f"{cell}: records/s", server, records / seconds)
    results.add(f"{cell}: records per CPU second", server, records / used)
    return records / seconds, records / used


def make_topic(servers: str, topic: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(20)


def load(servers: str, topic: str, value: bytes, count: int, partitions: int = 1) -> None:
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20})
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(60)


def idle(results: Results, server: str, servers: str, libs: Path) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, worker(server, Path(folder), servers, libs) as at:
        ready = time.monotonic() - began
        results.add("start to REST ready, s", server, ready, lower_is_better=True)
        time.sleep(2)
        results.add("idle: resident, MB", server, at.megabytes(), lower_is_better=True)


def source(results: Results, server: str, kind: str, count: int, libs: Path) -> None:
    with LocalBroker(is_testing=False) as broker, tempfile.TemporaryDirectory() as name:
        servers, folder = broker.bootstrap_servers, Path(name)
        make_topic(servers, "lines")
        (folder / "in").write_text(f"{LINE}\n" * count)
        told = {"value__converter": CONVERTERS[kind]}
        with worker(server, folder, servers, libs, **told) as running:
            file = {"file": f"{folder}/in", "topic": "lines"}
            running.put("in", connector__class=SOURCE, **file)
            ends = Ends(servers, "lines")
            timed_lines(results, server, f"file source, {kind}", running, ends, count)


def in_json() -> bytes:
    """Return the line as Kafka's converter writes it."""
    schema = {"type": "string", "optional": False}
    return json.dumps({"schema": schema, "payload": LINE}, separators=(",", ":")).encode()


def sink(results: Results, server: str, kind: str, count: int, libs: Path) -> None:
    value = LINE.encode()
    if kind != "strings":
        value = in_json()
    with LocalBroker(is_testing=False) as broker, tempfile.TemporaryDirectory() as name:
        servers, folder = broker.bootstrap_servers, Path(name)
        make_topic(servers, "lines")
        load(servers, "lines", value, count)
        told = {"value__converter": CONVERTERS[kind], "consumer__auto__offset__reset": "earliest"}
        with worker(server, folder, servers, libs, **told) as running:
            running.put("out", connector__class=SINK, file=f"{folder}/out", topics="lines")
            lines = written(folder / "out")
            timed_lines(results, server, f"file sink, {kind}", running, lines, count)


def written(file: Path) -> Callable[[], int]:
    """Return a function that counts the lines of a file; all have one length."""
    return lambda: file.stat().st_size // (len(LINE) + 1) if file.exists() else 0


def table(results: Results, rows: int, libs: Path) -> None:
    with LocalBroker(is_testing=False) as broker, tempfile.TemporaryDirectory() as name:
        servers, folder = broker.bootstrap_servers, Path(name)
        make_topic(servers, "items")
        with sqlite3.connect(folder / "items.db") as database:
            database.execute("create table items (id integer primary key, name text, price real)")
            made = ((number, f"item {number}", number / 4) for number in range(1, rows + 1))
            database.executemany("insert into items values (?, ?, ?)", made)
        database.close()
        with worker("millstream", folder, servers, libs, value__converter=JSON) as running:
            running.put(
                "items",
                connector__class="JdbcSource",
                connection__url=f"sqlite:///{folder}/items.db",
                mode="incrementing",
                incrementing__column__name="id",
                table__include__list="items",
                topic__prefix="",
                batch__max__rows="2000",
                poll__interval__ms="1",
            )
            cell = f"JDBC source of {rows:,} rows, JSON with schemas"
            timed(results, "millstream", cell, running, Ends(servers, "items"), rows)


def two_tasks(results: Results, isolation: str, count: int, libs: Path) -> None:
    value = in_json()
    with LocalBroker(is_testing=False) as broker, tempfile.TemporaryDirectory() as name:
        servers, folder = broker.bootstrap_servers, Path(name)
        make_topic(servers, "lines", 2)
        load(servers, "lines", value, count, 2)
        told = {"value__converter": JSON, "consumer__auto__offset__reset": "earliest"}
        told["tasks__isolation"] = isolation
        with worker("millstream", folder, servers, libs, **told) as running:
            out = f"{folder}/out"
            running.put("out", connector__class=SINK, file=out, topics="lines", tasks__max="2")
            cell = f"two sink tasks, tasks.isolation={isolation}"
            timed_lines(results, "millstream", cell, running, written(folder / "out"), count)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench connect", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--libs", type=Path, help="folder with connect-runtime and what it needs")
    options = parser.parse_args(arguments)
    servers = ["millstream"] if options.libs is None else ["millstream", "kafka"]
    results = Results()
    for number in range(options.rounds):
        for server in servers:
            print(f"round {number + 1}: {server}", file=sys.stderr, flush=True)
            with LocalBroker(is_testing=False) as broker:
                idle(results, server, broker.bootstrap_servers, options.libs)
            for kind in CONVERTERS:
                source(results, server, kind, options.records, options.libs)
                sink(results, server, kind, options.records, options.libs)
    for isolation in ("thread", "process"):
        two_tasks(results, isolation, options.records, options.libs)
    table(results, options.rows, options.libs)
    print("\n".join(results.rows()))
    return 0
