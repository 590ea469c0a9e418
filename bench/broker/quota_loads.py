"""Clients that use as much as they get, and ignore `throttle_time_ms`: one for each quota.

A load runs in its own process until it is told to stop, and tells how much was admitted, at what
time. Its requests go out as fast as answers come in, a few at once on each connection.
"""

import contextlib
import selectors
import socket
import struct
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from typing import Any

from broker.records.build import build_batch
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from common.kafka.protocol.messages.metadata import MetadataRequest
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

TOPIC = "metered"
CONNECTIONS = 3
AT_ONCE = 2
VALUE_BYTES = 10_000

Made = tuple[ApiKey, int, Message]
Amount = Callable[[Any], float]


def batch() -> bytes:
    """Return the batch that a producer sends again and again."""
    return build_batch([(None, b"x" * VALUE_BYTES, (), 0)])


def produce(number: int) -> Made:
    """Return a Produce of one batch."""
    data = PartitionProduceData(index=0, records=batch())
    topic = TopicProduceData(name=TOPIC, partition_data=[data])
    return ApiKey.PRODUCE, 9, ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[topic])


def produced(response: Any) -> float:
    """Return the bytes that a Produce appended."""
    (answer,) = response.responses[0].partition_responses
    return len(batch()) if answer.error_code == 0 else 0


def fetch(number: int) -> Made:
    """Return a Fetch from the start of the topic."""
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 14)
    topic = FetchTopic(topic=TOPIC, partitions=[wanted])
    return ApiKey.FETCH, 12, FetchRequest(max_wait_ms=100, min_bytes=1, topics=[topic])


def fetched(response: Any) -> float:
    """Return the bytes of a Fetch's answer."""
    return sum(
        len(data.records or b"") for topic in response.responses for data in topic.partitions
    )


def metadata(number: int) -> Made:
    """Return a question about all topics."""
    return ApiKey.METADATA, 9, MetadataRequest(topics=None)


def one(response: Any) -> float:
    """Return 1 for each answer."""
    return 1.0


def new_topics(version: int) -> Callable[[int], Made]:
    """Return a load of new topics; from version 6 on they may be refused."""

    def make(number: int) -> Made:
        topic = CreatableTopic(
            name=f"new-{version}-{number}", num_partitions=2, replication_factor=1
        )
        return ApiKey.CREATE_TOPICS, version, CreateTopicsRequest(topics=[topic])

    return make


def created(response: Any) -> float:
    """Return the number of new partitions."""
    return sum(2 for topic in response.topics if topic.error_code == 0)


LOADS: dict[str, tuple[Callable[[int], Made], Amount]] = {
    "producer_byte_rate": (produce, produced),
    "consumer_byte_rate": (fetch, fetched),
    "request_percentage": (metadata, one),
    "controller_mutation_rate": (new_topics(7), created),
    "controller_mutation_rate, v5": (new_topics(5), created),
}


class _Greedy:
    """One connection with requests under way."""

    def __init__(self, port: int, client_id: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self.received = bytearray()

    def send(self, number: int, made: Made) -> None:
        api_key, version, message = made
        frame = encode_request(api_key, version, number, self.client_id, message)
        self.socket.sendall(frame)

    def answers(self) -> list[bytes]:
        self.received += self.socket.recv(1 << 20)
        frames = []
        while len(self.received) >= 4:
            (size,) = struct.unpack_from(">i", self.received)
            if len(self.received) < 4 + size:
                break
            frames.append(bytes(self.received[4 : 4 + size]))
            del self.received[: 4 + size]
        return frames


def use_up(port: int, kind: str, client_id: str, pipe: Pipe) -> None:
    """Use as much as the broker gives until the pipe says stop; send (time, amount) of each."""
    make, amount = LOADS[kind]
    ready = selectors.DefaultSelector()
    admitted: list[tuple[float, float]] = []
    number = 0
    for _ in range(CONNECTIONS):
        greedy = _Greedy(port, client_id)
        ready.register(greedy.socket, selectors.EVENT_READ, greedy)
        for _ in range(AT_ONCE):
            number += 1
            greedy.send(number, make(number))
    while not pipe.poll():
        for key, _ in ready.select(0.05):
            greedy = key.data
            for frame in greedy.answers():
                _, response = decode_response(*make(number)[:2], frame)
                admitted.append((time.monotonic(), amount(response)))
                number += 1
                greedy.send(number, make(number))
    pipe.recv()
    pipe.send(admitted)


def connect_often(port: int, source: str, per_second: int, pipe: Pipe) -> None:
    """Open connections from an address until the pipe says stop; send the time of each served."""
    admitted: list[tuple[float, float]] = []
    waiting = selectors.DefaultSelector()
    due = time.monotonic()
    while not pipe.poll():
        due += 1 / per_second
        with contextlib.suppress(OSError):
            opened = socket.socket()
            opened.bind((source, 0))
            opened.setblocking(False)
            opened.connect_ex(("127.0.0.1", port))
            waiting.register(opened, selectors.EVENT_WRITE)
        _look_at(waiting, admitted, 0.0)
        while (left := due - time.monotonic()) > 0:
            _look_at(waiting, admitted, left)
    pipe.recv()
    pipe.send(admitted)


def _look_at(
    waiting: selectors.BaseSelector, admitted: list[tuple[float, float]], seconds: float
) -> None:
    """Ask on each new connection, and close those that were answered or refused."""
    for key, events in waiting.select(seconds):
        opened: Any = key.fileobj
        try:
            if events & selectors.EVENT_WRITE:
                frame = encode_request(ApiKey.METADATA, 9, 1, "often", MetadataRequest(topics=[]))
                opened.send(frame)
                waiting.modify(opened, selectors.EVENT_READ)
                continue
            if opened.recv(1):
                admitted.append((time.monotonic(), 1.0))
        except OSError:
            pass
        waiting.unregister(opened)
        opened.close()
