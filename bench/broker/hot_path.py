"""The cost of a small request inside the node: the time from a readable socket to the sent answer.

`python -m bench hot-path --checkout PATH` measures another tree beside this one. Each tree runs in
its own process, with a connection over the loopback, and the two take turns, some hundred calls
each; the least time of all counts, so that other processes on the machine hardly matter. Beside the
time stand the Python calls and the bytecodes of one request, which are the same on every machine
(tests/broker/server/test_hot_path.py holds those of this tree). Every answer is checked.
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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent.parent
TOPIC = "hot"
COUNTED = 5
BATCHES, RECORDS, RECORD_BYTES = 400, 16, 1_000
CALLS_PER_TURN = 200
API_VERSIONS = b"\0\0\0\x0a\0\x12\0\0\0\0\0\x01\xff\xff"
TURNS = 40
COUNTS = "counts of "


def main(arguments: list[str]) -> int:
    """Measure one tree, or two in turn, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench hot-path", description=__doc__)
    parser.add_argument("--checkout", type=Path, help="another tree, the one to compare with")
    parser.add_argument("--turns", type=int, default=TURNS)
    parsed = parser.parse_args(arguments)
    trees = [ROOT] if parsed.checkout is None else [parsed.checkout, ROOT]
    with ExitStack() as stack:
        nodes = [stack.enter_context(_measured(tree)) for tree in trees]
        names = [tree.name for tree in trees]
        heads = [f"{name} us" for name in names] + ["ratio"]
        heads += [f"{name} calls, bytecodes" for name in names]
        print(f"| request | {' | '.join(heads)} |")
        print("|---|" + "---|" * len(heads))
        for name in _ask(nodes[0], "names"):
            least = [float("inf")] * len(nodes)
            for _ in range(parsed.turns):
                for number, node in enumerate(nodes):
                    least[number] = min(least[number], _ask(node, name))
            told = " | ".join(f"{microseconds:.1f}" for microseconds in least)
            counts = " | ".join("{}, {}".format(*_ask(node, f"{COUNTS}{name}")) for node in nodes)
            print(f"| {name} | {told} | {least[-1] / least[0]:.2f} | {counts} |", flush=True)
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


# --- in the process of one tree, whose modules are imported there and nowhere else ---


def serve(tree: str) -> None:
    """Answer on standard output with the microseconds of what standard input names."""
    sys.path[0] = tree
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        node = _Node(folder)
        frames = _frames(node)
        for line in sys.stdin:
            name = line.strip()
            print(json.dumps(_told(node, frames, name)), flush=True)


def _told(node: "_Node", frames: "dict[str, Hot]", name: str) -> Any:
    if name == "names":
        return list(frames)
    if name.startswith(COUNTS):
        return node.counts(frames[name.removeprefix(COUNTS)])
    return node.least_microseconds(frames[name])


class Hot(NamedTuple):
    """A request, and what its answer has to be."""

    api_key: int
    api_version: int
    frame: bytes
    is_right: Callable[[Any], bool]

    def check(self, answer: bytes) -> None:
        """Raise AssertionError for any other answer."""
        from common.kafka.protocol.framing import decode_response

        _, message = decode_response(self.api_key, self.api_version, answer)
        assert self.is_right(message), message


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
        self._node = Node(config, cluster_id=None)
        self._loop.run_until_complete(self._node.open(Stop()))
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

    def close(self) -> None:
        """Stop the node."""
        self._socket.close()
        self._loop.run_until_complete(self._node.stop())
        self._loop.close()

    def least_microseconds(self, hot: Hot) -> float:
        """Return the least time of a request of many calls."""
        least = 1 << 60
        gc.disable()
        for _ in range(CALLS_PER_TURN):
            self._socket.sendall(hot.frame)
            started = time.perf_counter_ns()
            self._on_readable()
            least = min(least, time.perf_counter_ns() - started)
            hot.check(self._receive())
        gc.enable()
        return least / 1000

    def counts(self, hot: Hot) -> tuple[int, int]:
        """Count the Python calls and the bytecodes of a request, the least of a few."""
        return min(self._count(hot) for _ in range(COUNTED))

    def _count(self, hot: Hot) -> tuple[int, int]:
        calls = bytecodes = 0

        def trace(frame: Any, event: str, argument: object) -> Any:
            nonlocal calls, bytecodes
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            calls += event == "call"
            bytecodes += event == "opcode"
            return trace

        self._socket.sendall(hot.frame)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            self._on_readable()
        finally:
            sys.settrace(before)
        hot.check(self._receive())
        return calls, bytecodes

    def _receive(self) -> bytes:
        size = int.from_bytes(self._socket.recv(4, socket.MSG_WAITALL), "big")
        return self._socket.recv(size, socket.MSG_WAITALL)


def _connection_of(ours: socket.socket) -> Any:
    peer = ours.getsockname()
    for found in gc.get_objects():
        if type(found).__name__ == "Connection":
            # An older tree that this one is measured beside calls it `_socket`.
            accepted = found.socket if hasattr(found, "socket") else found._socket  # noqa: SLF001
            if accepted.getpeername() == peer:
                return found
    raise LookupError(f"no connection of {peer}")


def _frames(node: _Node) -> dict[str, Hot]:
    """Return the requests by name."""
    from broker.records.build import build_batch
    from common.kafka.protocol.api_keys import ApiKey
    from common.kafka.protocol.framing import encode_request
    from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
    from common.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
    from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
    from common.kafka.protocol.messages.produce import (
        PartitionProduceData,
        ProduceRequest,
        TopicProduceData,
    )

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

    def fetched(answer: Any) -> bool:
        (partition,) = answer.responses[0].partitions
        return not partition.error_code and len(partition.records) > RECORDS * RECORD_BYTES

    def produced(answer: Any) -> bool:
        (partition,) = answer.responses[0].partition_responses
        return not partition.error_code and partition.base_offset >= RECORDS * BATCHES

    def described(answer: Any) -> bool:
        return [len(topic.partitions) for topic in answer.topics] == [1]

    return {
        "fetch 16 KB by index": Hot(ApiKey.FETCH, 12, fetch(far), fetched),
        "fetch 16 KB at the end": Hot(ApiKey.FETCH, 12, fetch(near), fetched),
        "metadata of a topic": Hot(ApiKey.METADATA, 9, metadata, described),
        "produce 100 B": Hot(ApiKey.PRODUCE, 9, produce(1, 100), produced),
        "produce 16 KB": Hot(ApiKey.PRODUCE, 9, produce(RECORDS, RECORD_BYTES), produced),
        "produce 100 KB": Hot(ApiKey.PRODUCE, 9, produce(100, RECORD_BYTES), produced),
    }


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


if __name__ == "__main__":
    serve(sys.argv[2])
