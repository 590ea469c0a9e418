"""From the start of a process to its first acknowledged record, with a client without backoff.

A stock client backs off after a refused connection, so its backoff would be measured. This one
retries every two milliseconds.
"""

import socket
import struct
import time

from broker.records.build import build_batch
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

TOPIC = "first"
PAUSE_SECONDS = 0.002
METADATA_VERSION, PRODUCE_VERSION = 9, 9


def wait_for_first_record(port: int, timeout_seconds: float) -> None:
    """Wait until a record is acknowledged; raise TimeoutError."""
    deadline = time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as connection:
                _create_topic(connection, deadline)
                _produce(connection, deadline)
                return
        except (ConnectionError, TimeoutError):
            time.sleep(PAUSE_SECONDS)
    raise TimeoutError("no record was acknowledged")


def _create_topic(connection: socket.socket, deadline: float) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
    while time.monotonic() < deadline:
        response = _ask(connection, ApiKey.METADATA, METADATA_VERSION, request)
        assert isinstance(response, MetadataResponse)
        topic = response.topics[0]
        if topic.error_code == 0 and topic.partitions and topic.partitions[0].leader_id >= 0:
            return
        time.sleep(PAUSE_SECONDS)


def _produce(connection: socket.socket, deadline: float) -> None:
    batch = build_batch([(None, b"x", (), time.time_ns() // 1_000_000)])
    data = [PartitionProduceData(index=0, records=batch)]
    request = ProduceRequest(
        acks=1, timeout_ms=5000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)]
    )
    while time.monotonic() < deadline:
        response = _ask(connection, ApiKey.PRODUCE, PRODUCE_VERSION, request)
        assert isinstance(response, ProduceResponse)
        if response.responses[0].partition_responses[0].error_code == 0:
            return
        time.sleep(PAUSE_SECONDS)


def _ask(connection: socket.socket, api_key: ApiKey, version: int, request: Message) -> Message:
    connection.sendall(encode_request(api_key, version, 1, "bench", request))
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    return decode_response(api_key, version, _exactly(connection, size))[1]


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        chunk = connection.recv(count - len(received))
        if not chunk:
            raise ConnectionError("closed")
        received += chunk
    return bytes(received)
