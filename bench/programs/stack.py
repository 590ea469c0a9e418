"""`millstream up` beside Apache Kafka with Apache Connect: `python -m bench stack --rounds 3`.

Time from the start of the first process until a broker takes connections and Connect answers, and
the memory that all processes have ten seconds later, idle. Memory is proportional (PSS): the sum is
what the machine provides. Ours has a schema registry, a REST proxy and a console besides; the parts
`--only broker,registry,rest-proxy,console` are measured too. Rounds are interleaved, each in a
fresh folder. Apache's processes are started as its scripts do it, with heaps of 512 and 256 MB, the
broker first, in a folder that is formatted already.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.lib.ports import free_port
from bench.lib.results import Results
from bench.lib.servers import ROOT, ApacheKafka, find_kafka
from tests.lib.process_tree import processes_below

IDLE_SECONDS = 10.0
READY_SECONDS = 180.0
POLL_SECONDS = 0.02
MEGABYTE = 1_000_000
_WITHOUT_CONNECT = ("--only", "broker,registry,rest-proxy,console")


def pss_bytes(pids: list[int]) -> int:
    """Return the memory of processes together; one that has ended has none."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def wait_until(check: Callable[[], bool]) -> None:
    """Wait until something is so; raises TimeoutError."""
    deadline = time.monotonic() + READY_SECONDS
    while not check():
        if time.monotonic() > deadline:
            raise TimeoutError("not ready in time")
        time.sleep(POLL_SECONDS)


def answers(url: str) -> bool:
    """Tell whether a server answers with success."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.URLError):
        return False


@contextmanager
def our_stack(*arguments: str) -> Iterator[tuple[float, list[int]]]:
    """Run `millstream up`; gives the seconds until it returns, and its processes."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "MILLSTREAM_HOME": home}

        def millstream(*told: str) -> str:
            command = [sys.executable, "-m", "millstream", *told]
            done = subprocess.run(command, env=environment, check=True, capture_output=True)
            return done.stdout.decode()

        began = time.monotonic()
        told = json.loads(millstream("up", "--any-port", "--ephemeral", "--json", *arguments))
        seconds = time.monotonic() - began
        try:
            yield seconds, [told["pid"], *processes_below(told["pid"])]
        finally:
            millstream("down")


@contextmanager
def apache_stack(kafka: ApacheKafka, connect_libraries: Path) -> Iterator[tuple[float, list[int]]]:
    """Run a node and a worker; gives the seconds until both answer, and their processes."""
    with tempfile.TemporaryDirectory() as folder:
        kafka.folder, kafka.port = Path(folder), free_port()
        kafka.prepare()
        port = free_port()
        properties = Path(folder) / "connect.properties"
        properties.write_text(_worker(kafka.bootstrap, port))
        log = (Path(folder) / "log").open("wb")
        began = time.monotonic()
        node = subprocess.Popen(kafka.command(), stdout=log, stderr=log)
        command = ["java", "-Xms256m", "-Xmx256m", "-cp", f"{connect_libraries}/*"]
        command += ["org.apache.kafka.connect.cli.ConnectDistributed", str(properties)]
        worker = None
        try:
            wait_until(lambda: _listens(kafka.port))
            worker = subprocess.Popen(command, stdout=log, stderr=log)
            wait_until(lambda: answers(f"http://127.0.0.1:{port}/connectors"))
            yield time.monotonic() - began, [node.pid, worker.pid]
        finally:
            for process in (worker, node):
                if process is not None:
                    process.kill()
                    process.wait()
            log.close()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _worker(bootstrap: str, port: int) -> str:
    told = {
        "bootstrap.servers": bootstrap,
        "group.id": "connect",
        "listeners": f"http://127.0.0.1:{port}",
        "config.storage.topic": "connect-configs",
        "offset.storage.topic": "connect-offsets",
        "offset.storage.partitions": "1",
        "status.storage.topic": "connect-status",
        "status.storage.partitions": "1",
        **{f"{each}.storage.replication.factor": "1" for each in ("config", "offset", "status")},
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "plugin.discovery": "service_load",
    }
    return "".join(f"{name}={value}\n" for name, value in told.items())


def main(arguments: list[str]) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench stack", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connect-libs", type=Path, default=ROOT / "build" / "connect-libs")
    options = parser.parse_args(arguments)
    libraries = find_kafka()
    has_apache = libraries is not None and any(options.connect_libs.glob("connect-runtime-*.jar"))
    if not has_apache:
        print("no jars of Apache Kafka and Connect: ours alone (tests fetch them with Maven)")
    results = Results()
    for number in range(options.rounds):
        print(f"round {number + 1}", file=sys.stderr, flush=True)
        with our_stack() as (seconds, pids):
            _add(results, "millstream", "with Connect", seconds, pids)
        if libraries is not None and has_apache:
            with apache_stack(ApacheKafka(libraries, "512m"), options.connect_libs) as found:
                _add(results, "kafka", "with Connect", *found)
        with our_stack(*_WITHOUT_CONNECT) as (seconds, pids):
            _add(results, "millstream", "without Connect", seconds, pids)
    print("\n".join(results.rows()))
    return 0


def _add(results: Results, server: str, what: str, seconds: float, pids: list[int]) -> None:
    results.add(f"{what}: start to ready, s", server, seconds, lower_is_better=True)
    time.sleep(IDLE_SECONDS)
    memory = pss_bytes(pids) / MEGABYTE
    results.add(f"{what}: idle memory, MB", server, memory, lower_is_better=True)
