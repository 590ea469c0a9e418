"""The cost of a small request inside the node: the time from a readable socket to the sent answer.

`python -m bench hot-path --checkout PATH` measures another tree beside this one. Each tree runs in
its own process, with a connection over the loopback, and the two take turns, some hundred calls
each; the least time of all counts, so that other processes on the machine hardly matter.
"""

import argparse
import asyncio
import gc
import json
import logging
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TOPIC = "hot"
BATCHES, RECORDS, RECORD_BYTES = 400, 16, 1_000
CALLS_PER_TURN = 200
API_VERSIONS = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff"
TURNS = 40


def main(arguments: list[str]) -> int:
    """Measure one tree, or two in turn, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench hot-path", description=__doc__)
    parser.add_argument("--checkout", type=Path, help="another tree, the one to compare with")
    parser.add_argument("--turns", type=int, default=TURNS)
    parsed = parser.parse_args(arguments)
    trees = [ROOT] if parsed.checkout is None else [parsed.checkout, ROOT]
    with ExitStack() as stack:
        nodes = [stack.enter_context(_measured(tree)) for tree in trees]
        print(f"| request | {' us | '.join(tree.name for tree in trees)} us | ratio |")
        print("|---|" + "---|" * (len(trees) + 1))
        for name in _ask(nodes[0], "names"):
            least = [float("inf")] * len(nodes)
            for _ in range(parsed.turns):
                for number, node in enumerate(nodes):
                    least[number] = min(least[number], _ask(node, name))
            told = " | ".join(f"{microseconds:.1f}" for microseconds in least)
            print(f"| {name} | {told} | {least[-1] / least[0]:.2f} |", flush=True)
    return 0


@contextmanager
def _measured(tree: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, __file__, "--serve", str(tree)]
    with subprocess.Popen(
        command, cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def _ask(process: subprocess.Popen[str], what: str) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    print(what, file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


# --- in the process of one tree, the only one that imports its modules ---


def serve(tree: str) -> None:
    """Read names of requests from standard input; write their microseconds to standard output."""
    sys.path[0] = tree
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="millrace-bench-") as folder:
        node = _Node(folder)
        frames = _frames(node)
        for line in sys.stdin:
            name = line.strip()
            told = list(frames) if name == "names" else node.least_microseconds(frames[name])
            print(json.dumps(told), flush=True)


class _Node:
    """A node of this process, and one connection to it."""

    def __init__(self, folder: str) -> None:
        from broker.config.broker_config import BrokerConfig
        from broker.server.node import Node, Stop

        self._loop = asyncio.new_event_loop()
        ports = [_free_port(), _free_port()]
        config = BrokerConfig.from_settings(
            {
                "process.roles": "broker,controller",
                "node.id": "1",
                "listeners": f"PLAINTEXT://127.0.0.1:{ports[0]},CONTROLLER://127.0.0.1:{ports[1]}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": f"1@127.0.0.1:{ports[1]}",
                "log.dir": folder,
            }
        )
        self._loop.run_until_complete(Node(config, cluster_id=None).open(Stop()))
        self._socket = socket.create_connection(("127.0.0.1", ports[0]))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ask(API_VERSIONS)  # The node accepts the connection.
        self._on_readable = _connection_of(self._socket).on_readable

    def ask(self, frame: bytes) -> bytes:
        """Send a request, let the node run, and return the answer."""
        self._socket.sendall(frame)
        self._socket.setblocking(False)
        answer = bytearray()
        while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4], "big"):
            self._loop.run_until_complete(asyncio.sleep(0))
            try:
                received = self._socket.recv(1 << 20)
            except BlockingIOError:
                continue
            if not received:
                raise ConnectionError("the node has closed the connection")
            answer += received
        self._socket.setblocking(True)
        return bytes(answer[4:])

    def least_microseconds(self, frame: bytes) -> float:
        """Return the least time of a request of many calls."""
        least = 1 << 60
        gc.disable()
        for _ in range(CALLS_PER_TURN):
            self._socket.sendall(frame)
            started = time.perf_counter_ns()
            self._on_readable()
            least = min(least, time.perf_counter_ns() - started)
            self._receive()
        gc.enable()
        return least / 1000

    def _receive(self) -> None:
        left = int.from_bytes(self._socket.recv(4, socket.MSG_WAITALL), "big")
        while left:
            left -= len(self._socket.recv(left))


def _connection_of(ours: socket.socket) -> Any:
    peer = ours.getsockname()
    for found in gc.get_objects():
        if type(found).__name__ == "Connection":
            accepted = found._socket  # noqa: SLF001 - no part of a node gives it away
            if accepted.getpeername() == peer:
                return found
    raise LookupError(f"no connection of {peer}")


def _frames(node: _Node) -> dict[str, bytes]:
    """Return the requests by name."""
    from broker.protocol.api_keys import ApiKey
    from broker.protocol.framing import encode_request
    from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
    from broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
    from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
    from broker.protocol.messages.produce import (
        PartitionProduceData,
        ProduceRequest,
        TopicProduceData,
    )
    from broker.records.build import build_batch

    def produce(count: int, size_bytes: int) -> bytes:
        batch = build_batch([(None, bytes(size_bytes), (), 1_700_000_000_000)] * count)
        data = [PartitionProduceData(index=0, records=batch)]
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)]
        )
        return encode_request(ApiKey.PRODUCE, 9, 1, "hot", request)

    def fetch(offset: int) -> bytes:
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=16_384 + 512)
        topics = [FetchTopic(topic=TOPIC, partitions=[wanted])]
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 25, topics=topics)
        return encode_request(ApiKey.FETCH, 12, 1, "hot", request)

    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    create = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
    node.ask(encode_request(ApiKey.CREATE_TOPICS, 5, 1, "hot", create))
    for _ in range(BATCHES):
        node.ask(produce(RECORDS, RECORD_BYTES))
    metadata = encode_request(
        ApiKey.METADATA, 9, 1, "hot", MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    )
    # The index has the position of an offset far from the log's end, as a consumer reads at its
    # start; the log remembers that of one near the end, as a consumer reads that continues.
    far, near = RECORDS * (BATCHES // 3), RECORDS * (BATCHES - 2)
    return {
        "fetch 16 KB by index": fetch(far),
        "fetch 16 KB at the end": fetch(near),
        "metadata of a topic": metadata,
        "produce 100 B": produce(1, 100),
        "produce 16 KB": produce(RECORDS, RECORD_BYTES),
        "produce 100 KB": produce(100, RECORD_BYTES),
    }


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


if __name__ == "__main__":
    serve(sys.argv[2])
