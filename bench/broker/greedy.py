"""The effect of one greedy client on others: the latency of a well-behaved client, memory, time.

`python -m bench greedy`. Beside each load a client in its own process sends an ApiVersions request
every two milliseconds, open loop: a latency counts from the time when the request was DUE, so a
broker that blocks for a second shows it in every percentile. `--checkout` measures another tree in
turn, with the same client.
"""

import argparse
import math
import multiprocessing
import selectors
import socket
import statistics
import sys
import threading
import time
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import NamedTuple

from bench.broker.greedy_loads import LARGE_TOPIC, LOADS, SMALL_TOPIC, Load, api_versions
from bench.broker.side_by_side import create_topic
from bench.lib.first_record import wait_for_first_record
from bench.lib.servers import ROOT, Millstream

EVERY_SECONDS = 0.002
GIVE_UP_SECONDS = 120


class Outcome(NamedTuple):
    """The effect of one load."""

    seconds: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    grown_mb: float


def ask_on_time(port: int, pipe: Pipe) -> None:
    """Run the well-behaved client until the time from the pipe; send each due time and latency."""
    frame = api_versions()
    asked: list[float] = []
    seen: list[tuple[float, float]] = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(frame)
        connection.recv(int.from_bytes(connection.recv(4, socket.MSG_WAITALL)), socket.MSG_WAITALL)
        pipe.send("served once")

        def receive() -> None:
            while head := connection.recv(4, socket.MSG_WAITALL):
                connection.recv(int.from_bytes(head), socket.MSG_WAITALL)
                due = asked[len(seen)]
                seen.append((due, time.monotonic() - due))

        receiving = threading.Thread(target=receive)
        receiving.start()
        due, last = time.monotonic(), math.inf
        while due <= last:
            if last == math.inf and pipe.poll():
                last = pipe.recv()
            time.sleep(max(0.0, due - time.monotonic()))
            asked.append(due)
            connection.sendall(frame)
            due += EVERY_SECONDS
        while len(seen) < len(asked):
            time.sleep(EVERY_SECONDS)
        connection.shutdown(socket.SHUT_RDWR)
        receiving.join()
    pipe.send(seen)


def be_greedy(port: int, frame: bytes, load: Load) -> None:
    """Send all requests at once on every connection, and read the answers meanwhile.

    One process serves all connections: fifty would leave the well-behaved client no CPU time.
    """
    everything = memoryview(frame * load.requests)
    with selectors.DefaultSelector() as selector:
        for _ in range(load.connections):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setblocking(False)
            both = selectors.EVENT_READ | selectors.EVENT_WRITE
            selector.register(connection, both, Greedy(load.requests, everything))
        while selector.get_map():
            for key, events in selector.select(GIVE_UP_SECONDS):
                assert isinstance(key.fileobj, socket.socket)
                connection, greedy = key.fileobj, key.data
                if events & selectors.EVENT_WRITE and greedy.send(connection):
                    selector.modify(connection, selectors.EVENT_READ, greedy)
                if events & selectors.EVENT_READ and greedy.receive(connection):
                    selector.unregister(connection)
                    connection.close()


class Greedy:
    """One connection of the greedy client."""

    def __init__(self, count: int, everything: memoryview) -> None:
        self.left = count
        self.unsent = everything
        self.received = bytearray()

    def send(self, connection: socket.socket) -> bool:
        """Send as much as the socket accepts; return True after the last byte."""
        try:
            self.unsent = self.unsent[connection.send(self.unsent) :]
        except (BlockingIOError, ConnectionError):
            pass
        return not self.unsent

    def receive(self, connection: socket.socket) -> bool:
        """Count the answers received so far; return True after the last one."""
        try:
            chunk = connection.recv(1 << 20)
        except ConnectionError:
            chunk = b""
        if not chunk:
            print(f"  closed with {self.left} answers to come", file=sys.stderr)
            return True
        self.received += chunk
        position = 0
        while len(self.received) - position >= 4:
            end = position + 4 + int.from_bytes(self.received[position : position + 4])
            if end > len(self.received):
                break
            position = end
            self.left -= 1
        del self.received[:position]
        return self.left == 0


def ask(port: int, frames: list[bytes]) -> None:
    """Send one request after the other, and wait for each answer."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for frame in frames:
            connection.sendall(frame)
            left = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
            while left:
                left -= len(connection.recv(left))


def measure(server: Millstream, load: Load) -> Outcome:
    """Run one load beside the well-behaved client."""
    frame = load.frame()
    ours, theirs = multiprocessing.Pipe()
    polite = multiprocessing.Process(target=ask_on_time, args=(server.port, theirs))
    polite.start()
    ours.recv()
    server.forget_peak()
    before = server.resident_bytes()
    started = time.monotonic()
    greedy = multiprocessing.Process(target=be_greedy, args=(server.port, frame, load))
    greedy.start()
    greedy.join()
    ended = time.monotonic()
    ours.send(ended)
    seen = ours.recv()
    polite.join()
    during = sorted(latency * 1000 for due, latency in seen if started <= due <= ended)
    return Outcome(
        ended - started,
        statistics.median(during),
        during[int(0.99 * (len(during) - 1))],
        during[-1],
        (server.peak_bytes() - before) / 1e6,
    )


def main(arguments: list[str]) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench greedy", description=__doc__)
    parser.add_argument("--checkout", type=Path, default=ROOT, help="the tree that is measured")
    parser.add_argument("loads", nargs="*", help="only loads whose name contains one of these")
    parsed = parser.parse_args(arguments)
    (ROOT / "build").mkdir(exist_ok=True)
    print("| load | took, s | p50, ms | p99, ms | longest, ms | memory, MB |")
    print("|---|---|---|---|---|---|", flush=True)
    for load in LOADS:
        if parsed.loads and not any(wanted in load.name for wanted in parsed.loads):
            continue
        with Millstream(parsed.checkout) as server:
            wait_for_first_record(server.port, 60)
            create_topic(server, "small", SMALL_TOPIC)
            for number in range(load.topics):
                create_topic(server, f"large-{number}", LARGE_TOPIC)
            ask(server.port, load.before())
            done = measure(server, load)
        print(
            f"| {load.name} | {done.seconds:.2f} | {done.p50_ms:.2f} | {done.p99_ms:.1f} "
            f"| {done.max_ms:.1f} | {done.grown_mb:.0f} |",
            flush=True,
        )
    return 0
