"""Very many groups and transactional ids on one node: their cost, and their effect on others.

`python -m bench many [--count 100000]`: so many classic groups of one member each join and sync,
and all their sessions end at once; then so many transactional ids start a transaction each, and all
time out at once; then the node is killed and started again. Beside each step a client in its own
process sends an ApiVersions request every two milliseconds, open loop (as `greedy` does): its
longest latency is the longest time that the event loop was blocked. Goal: 50 ms.
"""

import argparse
import multiprocessing
import signal
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench.broker.greedy import ask_on_time
from bench.broker.groups import TOPIC
from bench.broker.side_by_side import create_topic
from bench.lib.first_record import wait_for_first_record
from bench.lib.servers import ROOT, Millstream
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from common.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from common.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from common.kafka.protocol.messages.list_groups import ListGroupsRequest
from common.kafka.protocol.messages.list_transactions import ListTransactionsRequest
from common.kafka.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

COUNT = 100_000
WINDOW = 200
"""The maximum of requests in flight."""
SESSION_MS = 45_000
TRANSACTION_MS = 30_000
GIVE_UP_SECONDS = 150
LOADING = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}


class Pipelined:
    """One connection with up to `WINDOW` requests in flight."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._file = self._socket.makefile("rb")

    def ask(self, key: ApiKey, version: int, requests: list[Message]) -> list[Any]:
        """Send all requests, and return the answers in their order."""
        frames = [encode_request(key, version, 1, "bench", request) for request in requests]
        self._socket.sendall(b"".join(frames))
        return [self._answer(key, version) for _ in requests]

    def _answer(self, key: ApiKey, version: int) -> Message:
        size = int.from_bytes(self._file.read(4))
        return decode_response(key, version, self._file.read(size))[1]


def windows(count: int) -> Iterator[range]:
    """Yield the numbers below `count` in ranges of at most `WINDOW`."""
    return (range(at, min(at + WINDOW, count)) for at in range(0, count, WINDOW))


def find_coordinators(connection: Pipelined) -> None:
    """Have both internal topics created, and wait until all their partitions are loaded."""
    for key_type in (0, 1):
        names = [f"name-{number}" for number in range(500)]
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=names)
        while True:
            (answer,) = connection.ask(ApiKey.FIND_COORDINATOR, 4, [request])
            if not any(each.error_code for each in answer.coordinators):
                break
            time.sleep(0.1)


def asked_until_good(
    connection: Pipelined, key: ApiKey, version: int, requests: list[Message]
) -> list[Any]:
    """Send requests, and repeat those whose shard is being loaded."""
    answers: dict[int, Any] = {}
    while left := [number for number in range(len(requests)) if number not in answers]:
        for number, answer in zip(
            left, connection.ask(key, version, [requests[number] for number in left]), strict=True
        ):
            code = ErrorCode(answer.error_code)
            assert code in {ErrorCode.NONE, *LOADING}, code
            if code == ErrorCode.NONE:
                answers[number] = answer
        if len(answers) < len(requests):
            time.sleep(0.1)
    return [answers[number] for number in range(len(requests))]


def join_groups(connection: Pipelined, count: int, name: str = "group") -> None:
    """Create `count` stable groups of one member each."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"\0\1" + bytes(12))
    for numbers in windows(count):
        joins: list[Message] = [
            JoinGroupRequest(
                group_id=f"{name}-{number}",
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=60_000,
                protocol_type="consumer",
                protocols=[protocol],
            )
            for number in numbers
        ]
        joined = asked_until_good(connection, ApiKey.JOIN_GROUP, 3, joins)
        syncs: list[Message] = [
            SyncGroupRequest(
                group_id=f"{name}-{number}",
                generation_id=each.generation_id,
                member_id=each.member_id,
                assignments=[
                    SyncGroupRequestAssignment(member_id=each.member_id, assignment=b"all")
                ],
            )
            for number, each in zip(numbers, joined, strict=True)
        ]
        asked_until_good(connection, ApiKey.SYNC_GROUP, 2, syncs)


def begin_transactions(connection: Pipelined, count: int) -> None:
    """Create `count` transactional ids with an open transaction each."""
    for numbers in windows(count):
        names = [f"id-{number}" for number in numbers]
        inits: list[Message] = [
            InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TRANSACTION_MS)
            for name in names
        ]
        known = asked_until_good(connection, ApiKey.INIT_PRODUCER_ID, 4, inits)
        adds: list[Message] = [
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=each.producer_id,
                v3_and_below_producer_epoch=each.producer_epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
            )
            for name, each in zip(names, known, strict=True)
        ]
        for answer in connection.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, adds):
            (topic,) = answer.results_by_topic_v3_and_below
            assert not topic.results_by_partition[0].partition_error_code, topic


def wait_while(ask: Callable[[], int], what: str) -> None:
    """Wait until the count is 0."""
    give_up = time.monotonic() + GIVE_UP_SECONDS
    while (left := ask()) > 0:
        assert time.monotonic() < give_up, f"{left} {what} are left"
        time.sleep(1.0)


def stable_groups(connection: Pipelined) -> int:
    """Count the groups with a member."""
    request = ListGroupsRequest(states_filter=["Stable"])
    (answer,) = connection.ask(ApiKey.LIST_GROUPS, 4, [request])
    return len(answer.groups)


def open_transactions(connection: Pipelined) -> int:
    """Count the open transactions."""
    states = ["Ongoing", "PrepareAbort", "PrepareEpochFence"]
    request = ListTransactionsRequest(state_filters=states)
    (answer,) = connection.ask(ApiKey.LIST_TRANSACTIONS, 0, [request])
    return len(answer.transaction_states)


def measure(server: Millstream, name: str, work: Callable[[], None]) -> None:
    """Call `work` beside the well-behaved client, and print a row."""
    ours, theirs = multiprocessing.Pipe()
    polite = multiprocessing.Process(target=ask_on_time, args=(server.port, theirs))
    polite.start()
    ours.recv()
    started, cpu = time.monotonic(), server.cpu_seconds()
    work()
    ended = time.monotonic()
    ours.send(ended)
    late = sorted(latency * 1000 for due, latency in ours.recv() if started <= due <= ended)
    polite.join()
    print(
        f"| {name} | {ended - started:.1f} | {server.cpu_seconds() - cpu:.1f} | "
        f"{statistics.median(late):.2f} | {late[int(0.99 * (len(late) - 1))]:.1f} | "
        f"{late[-1]:.1f} | {server.resident_bytes() / 1e6:.0f} |",
        flush=True,
    )


def start_again(server: Millstream) -> None:
    """Kill the node, and start it on the same folder."""
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    server.start()
    wait_for_first_record(server.port, 60)


def main(arguments: list[str]) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench many", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    count = parser.parse_args(arguments).count
    (ROOT / "build").mkdir(exist_ok=True)
    print("| step | took, s | CPU, s | p50, ms | p99, ms | longest, ms | resident, MB |")
    print("|---|---|---|---|---|---|---|", flush=True)
    with Millstream() as server:
        wait_for_first_record(server.port, 60)
        create_topic(server, TOPIC, 1)
        connection = Pipelined(server.port)
        find_coordinators(connection)
        measure(server, f"{count:,} groups join", lambda: join_groups(connection, count))
        measure(
            server,
            "their sessions end",
            lambda: wait_while(lambda: stable_groups(connection), "groups"),
        )
        measure(
            server, f"{count:,} transactions begin", lambda: begin_transactions(connection, count)
        )
        measure(
            server,
            "they time out",
            lambda: wait_while(lambda: open_transactions(connection), "transactions"),
        )
        start_again(server)
        connection = Pipelined(server.port)
        measure(
            server,
            "started again: 500 more groups join",
            lambda: join_groups(connection, 500, "more"),
        )
    return 0
