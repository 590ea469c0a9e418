"""The latency of one client beside very many connections: idle ones, and new ones all the time.

`python -m bench connections`. 5,000 connections are open and do nothing, and 500 more a second are
opened, ask one question and are closed. A client that sends a request every 20 ms measures its
latency from the time when each request was due. The goal: its p99 at most doubles.
"""

import argparse
import multiprocessing
import resource
import socket
import statistics
import time
from multiprocessing.connection import Connection as Pipe

from bench.broker.quota_loads import connect_often
from bench.broker.quotas import WellBehaved
from millstream.testing import LocalBroker


def stay_idle(port: int, count: int, pipe: Pipe) -> None:
    """Keep connections open until the pipe says stop."""
    raise_limit()
    opened = []
    for number in range(count):
        opened.append(socket.create_connection(("127.0.0.1", port), 60))
        if not number % 25:
            time.sleep(0.005)
    pipe.send("open")
    pipe.recv()
    for each in opened:
        each.close()


def raise_limit() -> None:
    """Allow this process and its children as many descriptors as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def latency(port: int, seconds: float) -> float:
    """Return the p99 of the well-behaved client in milliseconds."""
    client = WellBehaved(port, "127.0.0.2")
    time.sleep(seconds)
    return client.p99_ms()


def main(arguments: list[str]) -> int:
    """Print the median of the rounds' p99."""
    parser = argparse.ArgumentParser(prog="bench connections")
    parser.add_argument("--idle", type=int, default=5_000)
    parser.add_argument("--new", type=int, default=500, help="connections per second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    raise_limit()
    figures: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        with LocalBroker(is_testing=False) as broker:
            port = int(broker.bootstrap_servers.rpartition(":")[2])
            measured = {"at rest": latency(port, options.seconds)}
            idle_pipe, theirs = multiprocessing.Pipe()
            idle = multiprocessing.Process(target=stay_idle, args=(port, options.idle, theirs))
            idle.start()
            idle_pipe.recv()
            measured[f"{options.idle} idle"] = latency(port, options.seconds)
            pipe, theirs = multiprocessing.Pipe()
            load = multiprocessing.Process(
                target=connect_often, args=(port, "127.0.0.1", options.new, theirs)
            )
            load.start()
            begin = time.monotonic()
            name = f"{options.idle} idle and {options.new} new a second"
            measured[name] = latency(port, options.seconds)
            pipe.send("stop")
            served = len(pipe.recv()) / (time.monotonic() - begin)
            load.join()
            idle_pipe.send("stop")
            idle.join()
        for cell, value in measured.items():
            figures.setdefault(cell, []).append(value)
        print(f"served {served:.0f} new connections a second", flush=True)
    for cell, values in figures.items():
        spread = f"({min(values):.2f}..{max(values):.2f})"
        print(f"{cell}: p99 {statistics.median(values):.2f} ms {spread}")
    return 0
