"""The loads of `python -m bench greedy`: their requests, and those before the measurement."""

import struct
import time
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from broker.records.build import build_batch
from broker.records.compression import Codec
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.messages.api_versions import ApiVersionsRequest
from common.kafka.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from common.kafka.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.messages.delete_topics import DeleteTopicsRequest
from common.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from common.kafka.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from common.kafka.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from common.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from common.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from common.kafka.protocol.wire import encode_uvarint

SMALL_TOPIC, LARGE_TOPIC, MANY_TOPICS = 100, 900, 11  # partitions, partitions, topics
FUTURE_MS = 1 << 50
HUGE_BYTES = 104_857_600 - 300  # the largest request, less its other fields


class Load(NamedTuple):
    """The requests of a load, and the count of connections."""

    name: str
    frame: Callable[[], bytes]
    requests: int = 1
    connections: int = 1
    topics: int = 1  # of the large ones
    before: Callable[[], list[bytes]] = list  # the requests before the measurement


def metadata_of_all() -> bytes:
    """Request the metadata of all topics."""
    return encode_request(ApiKey.METADATA, 1, 1, None, MetadataRequest(topics=None))


def metadata_of(name: str, times: int) -> bytes:
    """Request the metadata of one topic many times."""
    topics = [MetadataRequestTopic(name=name)] * times
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    return encode_request(ApiKey.METADATA, 9, 1, None, request)


def metadata_of_distinct(count: int) -> bytes:
    """Request the metadata of very many unknown topics."""
    topics = [MetadataRequestTopic(name=f"n{number:07d}") for number in range(count)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    return encode_request(ApiKey.METADATA, 9, 1, None, request)


def offsets_of_distinct(count: int) -> bytes:
    """Request the end offset of a partition of very many unknown topics."""
    topics = [
        ListOffsetsTopic(name=f"n{number:07d}", partitions=[ListOffsetsPartition(timestamp=-1)])
        for number in range(count)
    ]
    return encode_request(ApiKey.LIST_OFFSETS, 7, 1, None, ListOffsetsRequest(topics=topics))


def produce_to_distinct(count: int) -> bytes:
    """Send a batch to a partition of very many unknown topics."""
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
    """Change a setting of very many unknown topics."""
    config = AlterableConfig(name="retention.ms", value="600000")
    resources = [
        AlterConfigsResource(resource_type=2, resource_name=f"n{number:07d}", configs=[config])
        for number in range(count)
    ]
    request = IncrementalAlterConfigsRequest(resources=resources)
    return encode_request(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, 1, None, request)


def api_versions() -> bytes:
    """Return a request with the smallest answer of all."""
    return encode_request(ApiKey.API_VERSIONS, 0, 1, None, ApiVersionsRequest())


def api_versions_with_tags(count: int) -> bytes:
    """Return a request with a header full of unknown tags."""
    tags = bytearray()
    for tag in range(count):
        tags += encode_uvarint(tag) + b"\0"
    start = struct.pack(">hhih", ApiKey.API_VERSIONS, 3, 1, -1) + encode_uvarint(count)
    content = start + bytes(tags) + b"\x02a\x02b\0"
    return struct.pack(">i", len(content)) + content


def configs_of(name: str, times: int) -> bytes:
    """Request the settings of one topic many times."""
    resources = [DescribeConfigsResource(resource_type=2, resource_name=name)] * times
    request = DescribeConfigsRequest(resources=resources, include_synonyms=True)
    return encode_request(ApiKey.DESCRIBE_CONFIGS, 4, 1, None, request)


def offsets_of_all() -> bytes:
    """Request the end offset of each partition of the many topics."""
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
    """Return bytes that do not compress: a batch of a ratio of 1,000 is refused at once."""
    return Random(1).randbytes(size_bytes)


def bomb(size_bytes: int) -> bytes:
    """Build a batch of one record of zeros that decompresses to `size_bytes`."""
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
    """Raise the partition count of the first new topic."""
    topics = [CreatePartitionsTopic(name="new-0", count=count, assignments=None)]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=60_000)
    return encode_request(ApiKey.CREATE_PARTITIONS, 2, 1, None, request)


def deletion(topic_count: int) -> bytes:
    """Delete the new topics."""
    names = [f"new-{number}" for number in range(topic_count)]
    request = DeleteTopicsRequest(topic_names=names, timeout_ms=60_000)
    return encode_request(ApiKey.DELETE_TOPICS, 5, 1, None, request)


def coordinator() -> bytes:
    """Find the group's coordinator, which creates the offsets topic and loads the shard."""
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


def commit_of_all() -> bytes:
    """Commit an offset for each partition of the many topics in one request."""
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=0)
        for index in range(LARGE_TOPIC)
    ]
    topics = [
        OffsetCommitRequestTopic(name=f"large-{number}", partitions=partitions)
        for number in range(MANY_TOPICS)
    ]
    request = OffsetCommitRequest(group_id="many", topics=topics)
    return encode_request(ApiKey.OFFSET_COMMIT, 8, 1, None, request)


def committed(topics: list[OffsetFetchRequestTopics] | None) -> bytes:
    """Fetch a group's committed offsets, of all or of some topics."""
    groups = [OffsetFetchRequestGroup(group_id="many", topics=topics)]
    return encode_request(
        ApiKey.OFFSET_FETCH, 8, 1, None, OffsetFetchRequest(groups=groups, require_stable=False)
    )


def committed_many_times(count: int) -> bytes:
    """Fetch the committed offset of one partition many times."""
    return committed([OffsetFetchRequestTopics(name="large-0", partition_indexes=[0] * count)])


def subscription_of_names() -> bytes:
    """Join a group of the new protocol with nearly 100 MiB of names, the maximum."""
    return joining_heartbeat(subscribed_topic_names=["x" * 10_400] * 10_000)


def subscription_of_a_pattern() -> bytes:
    """Join a group of the new protocol with one pattern longer than any string of Kafka's."""
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
    Load("Metadata: a million names, refused", lambda: metadata_of_distinct(1_000_000)),
    Load("Metadata: 50,000 empty names", lambda: metadata_of("", 50_000)),
    Load("Metadata: 50,000 distinct names", lambda: metadata_of_distinct(50_000), 5),
    Load("ListOffsets of 20,000 distinct topics", lambda: offsets_of_distinct(20_000), 5),
    Load("Produce to 20,000 distinct topics", lambda: produce_to_distinct(20_000), 5),
    Load("IncrementalAlterConfigs of 10,000 topics", lambda: settings_of_distinct(10_000)),
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
        "OffsetCommit: 9,900 offsets in one request, ten times",
        commit_of_all,
        10,
        topics=MANY_TOPICS,
        before=lambda: [coordinator()],
    ),
    Load(
        "OffsetFetch: all 9,900 offsets of a group, ten times",
        lambda: committed(None),
        10,
        topics=MANY_TOPICS,
        before=commits_of_all,
    ),
    Load(
        "OffsetFetch: a partition 50,000 times",
        lambda: committed_many_times(50_000),
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
