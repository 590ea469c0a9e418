"""How exactly a client is held to each quota, and whether others notice.

`python -m bench quotas --seconds 60`. For each kind of quota, clients that ignore
`throttle_time_ms` use as much as they get. The admitted amount per second is compared with the
quota, counted by the client; `request_percentage` is compared with the broker's own measure, and
its processor time stands beside it. A client without a quota sends a request every 20 ms meanwhile;
its latency is compared with the same broker at rest. The first seconds are not counted: a quota of
changes begins with a full bucket.
"""

import argparse
import contextlib
import io
import multiprocessing
import os
import socket
import statistics
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import confluent_kafka

from bench.broker.greedy_loads import api_versions
from bench.broker.quota_loads import LOADS, TOPIC, connect_often, use_up
from broker.__main__ import main as tool
from millstream.testing import LocalBroker

GREEDY = "greedy"
LIMITS = {
    "producer_byte_rate": 500_000.0,
    "consumer_byte_rate": 500_000.0,
    "request_percentage": 10.0,
    "controller_mutation_rate": 4.0,
    "controller_mutation_rate, v5": 4.0,
    "connection_creation_rate": 20.0,
    "max.connection.creation.rate": 20.0,
}
WARM_UP_SECONDS = 3.0
BUCKET_SECONDS = 11.0
EVERY_SECONDS = 0.02
CONNECTS_PER_SECOND = 100
REQUEST_TIME = "kafka_server_request_request_time"


class Held(NamedTuple):
    """The outcome of one load."""

    kind: str
    limit: float
    measured: float
    cpu_percent: float
    p99_ms_at_rest: float
    p99_ms: float

    @property
    def ratio(self) -> float:
        """The measured rate by the quota."""
        return self.measured / self.limit


def configure(broker: LocalBroker, *arguments: str) -> None:
    """Change quotas or settings with the tool; raises AssertionError if it refuses."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = tool(
            ["configs", "--bootstrap-server", broker.bootstrap_servers, "--alter", *arguments]
        )
    assert status == 0, said.getvalue()


@contextlib.contextmanager
def limited(broker: LocalBroker, kind: str) -> Iterator[None]:
    """Set the quota of a kind, and remove it at the end."""
    key = kind.partition(",")[0]
    entity = ["--entity-type", "clients", "--entity-name", GREEDY]
    if key == "connection_creation_rate":
        entity = ["--entity-type", "ips", "--entity-name", "127.0.0.1"]
    elif key == "max.connection.creation.rate":
        entity = ["--entity-type", "brokers", "--entity-default"]
    configure(broker, "--add-config", f"{key}={LIMITS[kind]:g}", *entity)
    try:
        yield
    finally:
        configure(broker, "--delete-config", key, *entity)


class WellBehaved:
    """A client without a quota, which measures its latency from when each request was due."""

    def __init__(self, port: int, source: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._latencies: list[float] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._is_over.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            self._socket.sendall(api_versions())
            head = self._socket.recv(4, socket.MSG_WAITALL)
            self._socket.recv(int.from_bytes(head), socket.MSG_WAITALL)
            self._latencies.append(time.monotonic() - due)
            due += EVERY_SECONDS

    def p99_ms(self) -> float:
        """Stop, and return the latency."""
        self._is_over.set()
        self._thread.join()
        self._socket.close()
        return 1_000 * statistics.quantiles(self._latencies, n=100)[98]


def measure(broker: LocalBroker, kind: str, seconds: float) -> Held:
    """Run one load against its quota."""
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    beside = WellBehaved(port, "127.0.0.2")
    time.sleep(min(seconds, 3.0))
    at_rest = beside.p99_ms()
    pipe, theirs = multiprocessing.Pipe()
    arguments: tuple[Any, ...] = (port, kind, GREEDY, theirs)
    target: Callable[..., None] = use_up
    if kind not in LOADS:
        arguments = (port, "127.0.0.1", CONNECTS_PER_SECOND, theirs)
        target = connect_often
    with limited(broker, kind):
        beside = WellBehaved(port, "127.0.0.2")
        load = multiprocessing.Process(target=target, args=arguments)
        load.start()
        time.sleep(BUCKET_SECONDS if "mutation" in kind else WARM_UP_SECONDS)
        begin, used_before = time.monotonic(), cpu_seconds(broker.pid)
        shares = []
        while time.monotonic() - begin < seconds:
            time.sleep(0.25)
            shares += [request_time(broker)] if kind == "request_percentage" else []
        end, used = time.monotonic(), cpu_seconds(broker.pid)
        pipe.send("stop")
        admitted: list[tuple[float, float]] = pipe.recv()
        load.join()
        p99_ms = beside.p99_ms()
    rate = sum(amount for at, amount in admitted if begin <= at < end) / (end - begin)
    measured = statistics.mean(shares) if shares else rate
    cpu = 100 * (used - used_before) / (end - begin)
    return Held(kind, LIMITS[kind], measured, cpu, at_rest, p99_ms)


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def request_time(broker: LocalBroker) -> float:
    """Return the broker's measure of the greedy client's share of its thread, in percent."""
    with urllib.request.urlopen(f"{broker.http_url}/metrics", timeout=10) as page:
        for line in page.read().decode().splitlines():
            if line.startswith(REQUEST_TIME) and GREEDY in line:
                return float(line.rpartition(" ")[2])
    return 0.0


def main(arguments: list[str]) -> int:
    """Print a row for each kind of quota; 1 if a rate is off by more than 5 %."""
    parser = argparse.ArgumentParser(prog="bench quotas")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("kinds", nargs="*", default=[*LIMITS], metavar="KIND")
    options = parser.parse_args(arguments)
    print("| quota | limit | measured | ratio | CPU % | others' p99 ms: at rest | beside it |")
    print("|---|---|---|---|---|---|---|")
    status = 0
    for kind in options.kinds:
        with LocalBroker(is_testing=False) as broker:
            broker.create_topic(TOPIC, partitions=1)
            if kind == "consumer_byte_rate":
                fill(broker)
            held = measure(broker, kind, options.seconds)
        if abs(held.ratio - 1) > 0.05:
            status = 1
        print(
            f"| {kind} | {held.limit:g} | {held.measured:.4g} | {held.ratio:.3f} | "
            f"{held.cpu_percent:.1f} | {held.p99_ms_at_rest:.2f} | {held.p99_ms:.2f} |",
            flush=True,
        )
    return status


def fill(broker: LocalBroker) -> None:
    """Write some records to fetch."""
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(200):
        producer.produce(TOPIC, b"x" * 5_000)
    producer.flush(30)
