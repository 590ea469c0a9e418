"""What one greedy client does to everybody else: latency of a well-behaved one, memory, time.

`python -m bench greedy`. Beside each load a client of its own process asks for ApiVersions every
two milliseconds, open loop: a latency counts from when the request was DUE, so a broker that stands
still for a second shows it in every percentile. `--checkout` measures another tree with the same
client, to compare an old one with a new one in turn.
"""

import argparse
import math
import multiprocessing
import selectors
import socket
import statistics
import struct
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench.first_record import wait_for_first_record
from bench.servers import ROOT, Millrace
from bench.side_by_side import create_topic
from broker.protocol.api_keys import ApiKey
from broker.protocol.framing import encode_request
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker.protocol.wire import encode_uvarint
from broker.records.build import build_batch
from broker.records.compression import Codec

EVERY_SECONDS = 0.002
SMALL_TOPIC, LARGE_TOPIC, MANY_TOPICS = 100, 900, 11  # partitions, partitions, topics
FUTURE_MS = 1 << 50
HUGE_BYTES = 104_857_600 - 300  # the largest request there may be, less the rest of it
GIVE_UP_SECONDS = 120


class Load(NamedTuple):
    """What is asked of the broker, and over how many connections."""

    name: str
    frame: Callable[[], bytes]
    count: int = 1
    connections: int = 1
    topics: int = 1  # of the large ones
    before: Callable[[], list[bytes]] = list  # what is asked first, and not measured


def metadata_of_all() -> bytes:
    """Ask for every topic."""
    return encode_request(ApiKey.METADATA, 1, 1, None, MetadataRequest(topics=None))


def metadata_of(name: str, times: int) -> bytes:
    """Ask for one topic many times."""
    topics = [MetadataRequestTopic(name=name)] * times
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    return encode_request(ApiKey.METADATA, 9, 1, None, request)


def metadata_of_distinct(count: int) -> bytes:
    """Ask for very many topics that are not there."""
    topics = [MetadataRequestTopic(name=f"n{number:07d}") for number in range(count)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    return encode_request(ApiKey.METADATA, 9, 1, None, request)


def offsets_of_distinct(count: int) -> bytes:
    """Ask for the end of a partition of very many topics that are not there."""
    topics = [
        ListOffsetsTopic(name=f"n{number:07d}", partitions=[ListOffsetsPartition(timestamp=-1)])
        for number in range(count)
    ]
    return encode_request(ApiKey.LIST_OFFSETS, 7, 1, None, ListOffsetsRequest(topics=topics))


def produce_to_distinct(count: int) -> bytes:
    """Send a batch to a partition of very many topics that are not there."""
    batch = build_batch([(None, b"x", (), int(time.time() * 1000))])
    topics = [
        TopicProduceData(
            name=f"n{number:07d}", partition_data=[PartitionProduceData(index=0, records=batch)]
        )
        for number in range(count)
    ]
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics)
    return encode_request(ApiKey.PRODUCE, 9, 1, None, request)


def settings_of_distinct(count: int) -> bytes:
    """Change a setting of very many topics that are not there."""
    config = AlterableConfig(name="retention.ms", value="600000")
    resources = [
        AlterConfigsResource(resource_type=2, resource_name=f"n{number:07d}", configs=[config])
        for number in range(count)
    ]
    request = IncrementalAlterConfigsRequest(resources=resources)
    return encode_request(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, 1, None, request)


def api_versions() -> bytes:
    """Ask for the smallest of all answers."""
    return encode_request(ApiKey.API_VERSIONS, 0, 1, None, ApiVersionsRequest())


def api_versions_with_tags(count: int) -> bytes:
    """Ask with a header full of tags nobody knows."""
    tags = bytearray()
    for tag in range(count):
        tags += encode_uvarint(tag) + b"\0"
    start = struct.pack(">hhih", ApiKey.API_VERSIONS, 3, 1, -1) + encode_uvarint(count)
    content = start + bytes(tags) + b"\x02a\x02b\0"
    return struct.pack(">i", len(content)) + content


def configs_of(name: str, times: int) -> bytes:
    """Ask for the settings of one topic many times."""
    resources = [DescribeConfigsResource(resource_type=2, resource_name=name)] * times
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True)
    return encode_request(ApiKey.DESCRIBE_CONFIGS, 4, 1, None, request)


def offsets_of_all() -> bytes:
    """Ask for the end of each partition of the many topics."""
    indexes = range(LARGE_TOPIC)
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in indexes]
    names = [f"large-{number}" for number in range(MANY_TOPICS)]
    topics = [ListOffsetsTopic(name=name, partitions=wanted) for name in names]
    request = ListOffsetsRequest(topics=topics)
    return encode_request(ApiKey.LIST_OFFSETS, 7, 1, None, request)


def produce(batches: list[bytes]) -> bytes:
    """Send batches, all for partition 0 of the small topic."""
    data = [PartitionProduceData(index=0, records=batch) for batch in batches]
    topics = [TopicProduceData(name="small", partition_data=data)]
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics)
    return encode_request(ApiKey.PRODUCE, 9, 1, None, request)


def batch_of_the_future(count: int) -> bytes:
    """Build a small batch of very many records, each with a timestamp out of range."""
    first = (None, noise(24_000), (), FUTURE_MS)
    return build_batch([first, *[(None, b"", (), FUTURE_MS)] * count], compression=Codec.ZSTD)


def noise(size_bytes: int) -> bytes:
    """Give bytes that do not compress: a batch that shrinks a thousandfold is refused at once."""
    return Random(1).randbytes(size_bytes)


def bomb(size_bytes: int) -> bytes:
    """Build a batch of one record of zeros that unpacks to so many bytes."""
    value = noise(size_bytes // 950) + bytes(size_bytes)
    records = [(None, value, (), int(time.time() * 1000))]
    return build_batch(records, compression=Codec.ZSTD)


def creation(topic_count: int, partition_count: int = 1) -> bytes:
    """Create many topics."""
    topics = [
        CreatableTopic(name=f"new-{number}", num_partitions=partition_count, replication_factor=1)
        for number in range(topic_count)
    ]
    request = CreateTopicsRequest(topics=topics, timeout_ms=60_000)
    return encode_request(ApiKey.CREATE_TOPICS, 5, 1, None, request)


def more_partitions(count: int) -> bytes:
    """Give the first new topic so many."""
    topics = [CreatePartitionsTopic(name="new-0", count=count, assignments=None)]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=60_000)
    return encode_request(ApiKey.CREATE_PARTITIONS, 2, 1, None, request)


def deletion(topic_count: int) -> bytes:
    """Delete them again."""
    names = [f"new-{number}" for number in range(topic_count)]
    request = DeleteTopicsRequest(topic_names=names, timeout_ms=60_000)
    return encode_request(ApiKey.DELETE_TOPICS, 5, 1, None, request)


def coordinator() -> bytes:
    """Have the offsets topic made, and the group's shard loaded."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["many"])
    return encode_request(ApiKey.FIND_COORDINATOR, 4, 1, None, request)


def commits_of_all() -> list[bytes]:
    """Commit an offset for each partition of the many topics, a topic in a request."""
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=0)
        for index in range(LARGE_TOPIC)
    ]
    return [
        coordinator(),
        *(
            encode_request(
                ApiKey.OFFSET_COMMIT,
                8,
                1,
                None,
                OffsetCommitRequest(
                    group_id="many",
                    topics=[
                        OffsetCommitRequestTopic(name=f"large-{number}", partitions=partitions)
                    ],
                ),
            )
            for number in range(MANY_TOPICS)
        ),
    ]


def committed(topics: list[OffsetFetchRequestTopics] | None) -> bytes:
    """Fetch what a group has committed, all of it or for some topics."""
    groups = [OffsetFetchRequestGroup(group_id="many", topics=topics)]
    return encode_request(
        ApiKey.OFFSET_FETCH, 8, 1, None, OffsetFetchRequest(groups=groups, require_stable=False)
    )


def committed_many_times(count: int) -> bytes:
    """Fetch what is committed for a partition, again and again."""
    return committed([OffsetFetchRequestTopics(name="large-0", partition_indexes=[0] * count)])


def subscription_of_names() -> bytes:
    """Join a group of the new protocol with nearly 100 MiB of names, as many as are decoded."""
    return joining_heartbeat(subscribed_topic_names=["x" * 130] * 780_000)


def subscription_of_a_pattern() -> bytes:
    """The same with one pattern, too long for any string of Kafka's."""
    return joining_heartbeat(subscribed_topic_regex="a" * HUGE_BYTES)


def joining_heartbeat(**subscribed: Any) -> bytes:
    """Join a group of the new protocol."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="huge",
        member_id="member",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        topic_partitions=[],
        **subscribed,
    )
    return encode_request(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, 1, None, request)


def subscription_of_bytes() -> bytes:
    """Join a classic group with nearly 100 MiB of metadata."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=bytes(HUGE_BYTES))
    request = JoinGroupRequest(
        group_id="huge",
        session_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    return encode_request(ApiKey.JOIN_GROUP, 7, 1, None, request)


LOADS = (
    Load("1,000 pipelined Metadata of 1,000 partitions", metadata_of_all, 1_000),
    Load("10,000 pipelined Metadata of 1,000 partitions", metadata_of_all, 10_000),
    Load("50 connections of pipelined ApiVersions", api_versions, 15_000, 50),
    Load("Metadata: a topic of 100 partitions 20,000 times", lambda: metadata_of("small", 20_000)),
    Load("Metadata: a million empty names", lambda: metadata_of("", 1_000_000)),
    Load("Metadata: a million distinct names", lambda: metadata_of_distinct(1_000_000)),
    Load("ListOffsets of 100,000 distinct topics", lambda: offsets_of_distinct(100_000)),
    Load("Produce to 100,000 distinct topics", lambda: produce_to_distinct(100_000)),
    Load("IncrementalAlterConfigs of 10,000 topics", lambda: settings_of_distinct(10_000)),
    Load("IncrementalAlterConfigs of 100,000 topics", lambda: settings_of_distinct(100_000)),
    Load("Metadata of 10,000 partitions", metadata_of_all, topics=MANY_TOPICS),
    Load("DescribeConfigs: a topic 10,000 times", lambda: configs_of("small", 10_000)),
    Load("ListOffsets of 9,900 partitions", offsets_of_all, topics=MANY_TOPICS),
    Load(
        "Produce: a million records out of time", lambda: produce([batch_of_the_future(1_000_000)])
    ),
    Load("Produce: a partition 30 times, 119 MB each", lambda: produce([bomb(119_000_000)] * 30)),
    Load("CreateTopics: 3,000", lambda: creation(3_000)),
    Load("DeleteTopics: 3,000", lambda: deletion(3_000), before=lambda: [creation(3_000)]),
    Load("CreateTopics: one of 2,000 partitions", lambda: creation(1, 2_000)),
    Load("CreateTopics: one of 9,900 partitions", lambda: creation(1, 9_900)),
    Load(
        "CreatePartitions: 9,900 more",
        lambda: more_partitions(9_901),
        before=lambda: [creation(1)],
    ),
    Load(
        "DeleteTopics: one of 9,900 partitions",
        lambda: deletion(1),
        before=lambda: [creation(1, 9_900)],
    ),
    Load(
        "OffsetFetch: all 9,900 offsets of a group, ten times",
        lambda: committed(None),
        10,
        topics=MANY_TOPICS,
        before=commits_of_all,
    ),
    Load(
        "OffsetFetch: a partition 200,000 times",
        lambda: committed_many_times(200_000),
        before=lambda: [coordinator()],
    ),
    *(
        Load(f"{name}, 100 MiB", subscription, before=lambda: [coordinator()])
        for name, subscription in (
            ("ConsumerGroupHeartbeat: names", subscription_of_names),
            ("ConsumerGroupHeartbeat: one pattern", subscription_of_a_pattern),
            ("JoinGroup: metadata", subscription_of_bytes),
        )
    ),
    Load("ApiVersions with a million tags", lambda: api_versions_with_tags(1_000_000)),
)


class Outcome(NamedTuple):
    """What one load did."""

    seconds: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    grown_mb: float


def ask_on_time(port: int, pipe: Pipe) -> None:
    """Be the well-behaved client until the time the pipe tells; send due and latency of each."""
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
    """Send everything at once on every connection, reading all the while.

    One process for all of them: fifty would leave the well-behaved client no processor.
    """
    everything = memoryview(frame * load.count)
    with selectors.DefaultSelector() as selector:
        for _ in range(load.connections):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setblocking(False)
            both = selectors.EVENT_READ | selectors.EVENT_WRITE
            selector.register(connection, both, Greedy(load.count, everything))
        while selector.get_map():
            for key, events in selector.select(GIVE_UP_SECONDS):
                connection, greedy = key.fileobj, key.data
                assert isinstance(connection, socket.socket)
                if events & selectors.EVENT_WRITE and greedy.send(connection):
                    selector.modify(connection, selectors.EVENT_READ, greedy)
                if events & selectors.EVENT_READ and greedy.receive(connection):
                    selector.unregister(connection)
                    connection.close()


class Greedy:
    """One connection that asks for much."""

    def __init__(self, count: int, everything: memoryview) -> None:
        self.left = count
        self.unsent = everything
        self.received = bytearray()

    def send(self, connection: socket.socket) -> bool:
        """Send what goes; whether that was all."""
        try:
            self.unsent = self.unsent[connection.send(self.unsent) :]
        except (BlockingIOError, ConnectionError):
            pass
        return not self.unsent

    def receive(self, connection: socket.socket) -> bool:
        """Count the answers that are here; whether these were the last."""
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
    """Ask one thing after the other, and wait for each."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for frame in frames:
            connection.sendall(frame)
            left = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
            while left:
                left -= len(connection.recv(left))


def measure(server: Millrace, load: Load) -> Outcome:
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
        with Millrace(parsed.checkout) as server:
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
