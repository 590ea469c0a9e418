"""A few bytes that unpack to gigabytes: what they leave of a real broker's memory, and in its logs.

`records/compression.py` has the limits, and `storage/large_batches.py` says that one such batch at
a time is unpacked, on the whole node. So whoever sends how many of them in how many requests over
how many connections takes no more memory than the largest of them, and the bytes that are sent.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from broker.records.compression import MAX_DECOMPRESSED_BYTES, MAX_RATIO, Codec, compress
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import decode_response, encode_request
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from millstream.testing import LocalBroker
from tests.lib.bad_batches import GOOD, with_payload
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
PARTITIONS = len(CODECS)
CONNECTIONS = 2
TOO_MUCH_BYTES = MAX_DECOMPRESSED_BYTES + (1 << 20)
ALLOWED_BYTES = MAX_DECOMPRESSED_BYTES // 4
"""Unpacked whole before it is found that no records are in it."""
BESIDE_BYTES = 32 << 20
"""What codecs and threads take for themselves. What is sent counts twice: buffers are doubled."""
PRODUCE_VERSION = 9
LIST_OFFSETS_VERSION = 7
LATEST = -1


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    large = {"message.max.bytes": str(16 << 20)}  # snappy makes a twentieth at most
    with LocalBroker(**large) as started, RawConnection(started.bootstrap_servers) as one:
        topic = CreatableTopic(name="orders", num_partitions=PARTITIONS, replication_factor=1)
        one.ask(ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        good = one.ask(ApiKey.PRODUCE, PRODUCE_VERSION, produce([GOOD] * PARTITIONS))
        assert codes_of(good) == [0] * PARTITIONS
        yield started


def bomb(codec: Codec, unpacked_bytes: int) -> bytes:
    """Make a batch of zeros; of as much noise as makes it look worth its size, if it may be."""
    noise = 2 * unpacked_bytes // MAX_RATIO if unpacked_bytes <= MAX_DECOMPRESSED_BYTES else 0
    payload = bytes(unpacked_bytes - noise) + Random(1).randbytes(noise)
    return with_payload(compress(codec, payload, level=1), 1, codec)


def produce(batches: list[bytes]) -> ProduceRequest:
    """Send each batch to a partition of its own."""
    data = [PartitionProduceData(index=n, records=batch) for n, batch in enumerate(batches)]
    topic = TopicProduceData(name="orders", partition_data=data)
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def codes_of(response: object) -> list[int]:
    (topic,) = response.responses  # type: ignore[attr-defined]
    return [partition.error_code for partition in topic.partition_responses]


def ends_of(connection: RawConnection) -> list[int]:
    wanted = [ListOffsetsPartition(partition_index=n, timestamp=LATEST) for n in range(PARTITIONS)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=wanted)])
    response = connection.ask(ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, request)
    (topic,) = response.topics  # type: ignore[attr-defined]
    return [partition.offset for partition in topic.partitions]


def resident_bytes(broker: LocalBroker, name: str) -> int:
    status = Path(f"/proc/{broker.pid}/status").read_text()
    return 1024 * int(status.partition(f"{name}:")[2].split()[0])


def test_batches_that_unpack_to_much_cost_the_memory_of_one_and_leave_nothing(
    broker: LocalBroker,
) -> None:
    requests = [
        encode_request(
            ApiKey.PRODUCE,
            PRODUCE_VERSION,
            1,
            None,
            produce([bomb(codec, unpacked_bytes) for codec in CODECS]),
        )
        for unpacked_bytes in (ALLOWED_BYTES, TOO_MUCH_BYTES)
    ]
    before = resident_bytes(broker, "VmRSS")
    Path(f"/proc/{broker.pid}/clear_refs").write_text("5")
    with ExitStack() as stack:
        polite, *clients = [
            stack.enter_context(RawConnection(broker.bootstrap_servers, 60))
            for _ in range(1 + CONNECTIONS)
        ]
        for client in clients:
            client.send(b"".join(requests))
        ends = ends_of(polite)
        for client in clients:
            for _ in requests:
                frame = client.receive_frame()
                _, answer = decode_response(ApiKey.PRODUCE, PRODUCE_VERSION, frame)
                assert codes_of(answer) == [ErrorCode.INVALID_RECORD] * PARTITIONS
        sent_bytes = CONNECTIONS * len(b"".join(requests))
        most_bytes = MAX_DECOMPRESSED_BYTES + 2 * sent_bytes + BESIDE_BYTES
        assert resident_bytes(broker, "VmHWM") - before < most_bytes
        assert ends_of(polite) == ends == [2] * PARTITIONS, "what was there before"
        again = polite.ask(ApiKey.PRODUCE, PRODUCE_VERSION, produce([GOOD] * PARTITIONS))
        assert codes_of(again) == [0] * PARTITIONS
        assert ends_of(polite) == [4] * PARTITIONS
    assert "Traceback" not in broker.log()
