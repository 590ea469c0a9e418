"""The fuzzer against a real node: all listeners, a well-behaved client beside it, and a verdict.

A run is clean if the process lives, no stack trace was logged, the node never computed for longer
than `MAX_BLOCK_SECONDS` while its client waited, the memory stays below `MAX_RSS_BYTES`, and all
records of the well-behaved client are there. A failure names the seed and the last frames, first
those that fail by themselves.
"""

import os
import socket
import struct
import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from uuid import uuid4

from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from millstream.testing import LocalBroker
from tests.fuzz.in_process import (
    WITHOUT_RIGHTS,
    Finding,
    combined_settings,
    in_process_node,
)
from tests.fuzz.mutations import mutated
from tests.fuzz.neighbour import Neighbour
from tests.fuzz.valid_requests import (
    BROKER,
    CONTROLLER,
    LOGGED_IN,
    TOKENS,
    TOPIC,
    World,
    before,
    pick,
    valid_requests,
)
from tests.lib.raw_kafka import RawConnection

MAX_BLOCK_SECONDS = 1.0
MAX_RSS_BYTES = 400 << 20
FRAMES_PER_CONNECTION = 8
SUSPECTS = 400
LOOK_EVERY_SECONDS = 1.0
SIGNS_OF_A_BUG = ("Traceback (most recent call last)", " CRITICAL ")

Sent = tuple[str, bytes]


@dataclass
class Verdict:
    """The result of a run."""

    seed: int
    frames: int = 0
    connections: int = 0
    rounds: int = 0
    longest_wait_seconds: float = 0.0
    longest_block_seconds: float = 0.0
    peak_rss_bytes: int = 0
    problems: list[str] = field(default_factory=list)
    suspects: list[Sent] = field(default_factory=list)
    by_api: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}: {self.frames} frames on {self.connections} connections, "
            f"{len(self.by_api)} APIs of all listeners",
            f"well-behaved client: {self.rounds} rounds, the longest took "
            f"{self.longest_wait_seconds * 1000:.0f} ms; the node computed for at most "
            f"{self.longest_block_seconds * 1000:.0f} ms of one (limit "
            f"{MAX_BLOCK_SECONDS * 1000:.0f})",
            f"memory: at most {self.peak_rss_bytes >> 20} MB (limit {MAX_RSS_BYTES >> 20})",
            *self.problems,
            *(f"replay: {listener}:{frame.hex()}" for listener, frame in self.suspects),
            "clean" if not self.problems else "NOT CLEAN",
        ]
        return "\n".join(lines)


def fuzz_over_sockets(seed: int, seconds: float) -> Verdict:
    """Send mutated frames to a new node for `seconds`; clients that log in have no rights."""
    settings = combined_settings() | WITHOUT_RIGHTS
    with LocalBroker(**settings) as broker:
        broker_port, controller_port, sasl_port = _ports(settings["listeners"])
        addresses = {BROKER: broker_port, CONTROLLER: controller_port}
        addresses |= dict.fromkeys((LOGGED_IN, *TOKENS), sasl_port)
        neighbour = Neighbour(
            broker.bootstrap_servers,
            f"kept-{uuid4().hex[:12]}",
            partial(_processor_seconds, broker.pid),
        )
        neighbour.start()
        run = _Run(broker, neighbour, addresses, Verdict(seed))
        run.go(Random(seed), seconds)
        return run.verdict


class _Run:
    def __init__(
        self,
        broker: LocalBroker,
        neighbour: Neighbour,
        addresses: dict[str, int],
        verdict: Verdict,
    ) -> None:
        self._broker = broker
        self._neighbour = neighbour
        self._addresses = addresses
        self._suspects: deque[Sent] = deque(maxlen=SUSPECTS)
        self.verdict = verdict

    def go(self, random: Random, seconds: float) -> None:
        requests = list(valid_requests(self._world()))
        apis = {(request.listener, request.api_key) for request in requests}
        end = time.monotonic() + seconds
        next_look = 0.0
        # A slow machine goes on until every API was sent some.
        while not self.verdict.problems and (
            time.monotonic() < end or len(self.verdict.by_api) < len(apis)
        ):
            frames: list[Sent] = []
            for _ in range(random.randint(1, FRAMES_PER_CONNECTION)):
                request = pick(requests, random)
                if frames and frames[0][0] != request.listener:
                    continue
                frames.append((request.listener, mutated(request, random)))
                self.verdict.by_api[f"{request.listener} {request.api_key.name}"] += 1
            self._send(frames)
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + LOOK_EVERY_SECONDS
                self._look()
        self._neighbour.stop()
        if not self.verdict.problems:
            self._look()
        if self.verdict.problems:
            self.verdict.suspects = guilty(list(self._suspects))

    def _world(self) -> World:
        with RawConnection(self._broker.bootstrap_servers) as connection:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
            found = connection.ask(ApiKey.METADATA, 12, request)
        topic_id = found.topics[0].topic_id  # type: ignore[attr-defined]
        cluster_id = str(found.cluster_id)  # type: ignore[attr-defined]
        return World(cluster_id, topic_id, str(self._broker.data_folder))

    def _send(self, frames: list[Sent]) -> None:
        """Send some frames on one connection; the answers are read and ignored."""
        self.verdict.connections += 1
        address = ("127.0.0.1", self._addresses[frames[0][0]])
        with suppress(ConnectionError, TimeoutError), socket.create_connection(address, 5) as to:
            for first in before(*frames[0]):
                to.sendall(struct.pack(">i", len(first)) + first)
            for listener, frame in frames:
                self._suspects.append((listener, frame))
                self.verdict.frames += 1
                to.sendall(struct.pack(">i", len(frame)) + frame)
            to.settimeout(0.005)
            while to.recv(1 << 16):
                pass

    def _look(self) -> None:
        """Check the node for a problem."""
        verdict, neighbour = self.verdict, self._neighbour
        verdict.rounds = neighbour.rounds
        verdict.longest_wait_seconds = neighbour.longest_seconds
        verdict.longest_block_seconds = neighbour.most_computed_seconds
        log = self._broker.log()
        problems = [sign for sign in SIGNS_OF_A_BUG if sign in log]
        if problems:
            problems.append(log[max(0, log.index(problems[0]) - 300) :][:6_000])
        rss_bytes = _rss_bytes(self._broker.pid)
        verdict.peak_rss_bytes = max(verdict.peak_rss_bytes, rss_bytes)
        if rss_bytes == 0:
            problems.append(f"the process has ended:\n{log[-3_000:]}")
        if rss_bytes > MAX_RSS_BYTES:
            problems.append(f"memory has grown to {rss_bytes >> 20} MB")
        if neighbour.most_computed_seconds > MAX_BLOCK_SECONDS:
            problems.append(f"the node computed for {neighbour.most_computed_seconds:.1f} s")
        if neighbour.problem is not None:
            problems.append(neighbour.problem)
        verdict.problems += problems


def guilty(suspects: list[Sent]) -> list[Sent]:
    """Return the frames that fail by themselves; all frames if none does."""
    found = []
    for listener, frame in suspects:
        with in_process_node(WITHOUT_RIGHTS) as node:
            try:
                node.send(listener, frame)
            except Finding:
                found.append((listener, frame))
        if found:
            break
    return found or suspects


def _ports(listeners: str) -> list[int]:
    return [int(listener.rpartition(":")[2]) for listener in listeners.split(",")]


def _processor_seconds(pid: int) -> float:
    """Return the CPU time of a process; 0 if it has ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _rss_bytes(pid: int) -> int:
    """Return the resident memory of a process; 0 if it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) << 10
    return 0
