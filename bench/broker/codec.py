"""The speed of the protocol codec, for the three kinds of messages that decide a broker's speed.

`python -m bench codec`. Each figure is the least of several rounds of many calls, so that a busy
machine disturbs it little; README.md describes the method.
"""

import gc
from collections.abc import Callable
from time import perf_counter

from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from common.kafka.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from common.kafka.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

BLOB = bytes(100 * 1024)
ROUNDS = 7


def best_us(function: Callable[[], object], calls: int) -> float:
    """Return the least mean duration of a call over several rounds, in microseconds."""
    function()
    rounds = []
    for _ in range(ROUNDS):
        gc.collect()
        started = perf_counter()
        for _ in range(calls):
            function()
        rounds.append((perf_counter() - started) / calls)
    return min(rounds) * 1e6


def produce_frame() -> memoryview:
    """Make a Produce v9 request with one batch of 100 KB, without its size."""
    partition = PartitionProduceData(index=3, records=BLOB)
    topic = TopicProduceData(name="orders", partition_data=[partition])
    request = ProduceRequest(acks=-1, timeout_ms=30000, topic_data=[topic])
    return memoryview(encode_request(ApiKey.PRODUCE, 9, 17, "bench", request))[4:]


def produce_response() -> object:
    """Build and encode the answer to one batch."""
    partition = PartitionProduceResponse(index=3, base_offset=123456, log_start_offset=0)
    topic = TopicProduceResponse(name="orders", partition_responses=[partition])
    return encode_response(
        RequestHeader(ApiKey.PRODUCE, 9, 17, "bench"), ProduceResponse(responses=[topic])
    )


def fetch_response() -> object:
    """Build and encode a Fetch v12 answer with 100 KB of one partition."""
    partition = PartitionData(
        partition_index=3,
        high_watermark=123456,
        last_stable_offset=123456,
        log_start_offset=0,
        records=BLOB,
    )
    topic = FetchableTopicResponse(topic="orders", partitions=[partition])
    return encode_response(
        RequestHeader(ApiKey.FETCH, 12, 17, "bench"), FetchResponse(responses=[topic])
    )


def metadata_response() -> list[object]:
    """Build and encode a Metadata v12 answer with 3 brokers, 100 topics, 3 partitions each."""
    brokers = [
        MetadataResponseBroker(node_id=node_id, host="broker.example", port=9092)
        for node_id in range(3)
    ]
    topics = [
        MetadataResponseTopic(
            name=f"topic-{number:03}",
            topic_id=number.to_bytes(16, "big"),
            partitions=[
                MetadataResponsePartition(
                    partition_index=index,
                    leader_id=index,
                    leader_epoch=5,
                    replica_nodes=[0, 1, 2],
                    isr_nodes=[0, 1, 2],
                )
                for index in range(3)
            ],
        )
        for number in range(100)
    ]
    message = MetadataResponse(brokers=brokers, cluster_id="bench", controller_id=1, topics=topics)
    header = RequestHeader(ApiKey.METADATA, 12, 17, "bench")
    return list(encode_response(header, message))


def main(_arguments: list[str]) -> int:
    """Measure and print a line for each kind."""
    produce = produce_frame()
    metadata = metadata_response()[0]
    assert isinstance(metadata, bytes)
    metadata_frame = metadata[4:]
    shapes: list[tuple[str, Callable[[], object], int, float | None]] = [
        ("decode Produce v9, header and body, 100 KB", lambda: decode_request(produce), 20000, 6),
        ("build and encode Produce v9 response", produce_response, 20000, None),
        ("build and encode Fetch v12 response, 100 KB", fetch_response, 20000, 8),
        ("build and encode Metadata v12, 100 x 3", metadata_response, 200, 600),
        (
            "decode that Metadata, as a client",
            lambda: decode_response(ApiKey.METADATA, 12, metadata_frame),
            200,
            None,
        ),
    ]
    print(f"{'codec':<46}{'us':>8}{'goal':>8}")
    for name, function, calls, goal_us in shapes:
        goal = "" if goal_us is None else f"{goal_us:g}"
        print(f"{name:<46}{best_us(function, calls):>8.1f}{goal:>8}")
    return 0
