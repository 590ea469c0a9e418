"""What is named twice is done and answered once, as Apache Kafka does or in its place."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from broker.records.build import build_batch
from broker.records.validation import MAX_RECORDS_NAMED_AT_FAULT
from common.kafka.errors import ErrorCode
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from common.kafka.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from common.kafka.protocol.messages.describe_groups import DescribeGroupsRequest
from common.kafka.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from common.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from common.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from common.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from common.kafka.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.fuzz.in_process import InProcessNode, answer_to, in_process_node
from tests.fuzz.valid_requests import BROKER, TOPIC

TIMES = 500
STEPS = 200


@pytest.fixture(scope="module")
def node() -> Iterator[InProcessNode]:
    with in_process_node() as started:
        yield started


def ask(node: InProcessNode, request: Message, version: int) -> Any:
    frame = encode_request(request.__api_key__, version, 1, "test", request)[4:]
    return answer_to(frame, node.send(BROKER, frame, steps=STEPS))


def batch(value: bytes, timestamp_ms: int | None = None, count: int = 1) -> bytes:
    stamp = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    return build_batch([(b"key", value, (), stamp)] * count)


def end_offset(node: InProcessNode) -> int:
    wanted = ListOffsetsTopic(
        name=TOPIC, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
    )
    (topic,) = ask(node, ListOffsetsRequest(topics=[wanted]), 7).topics
    return int(topic.partitions[0].offset)


@pytest.mark.parametrize("version", [1, 9, 12])
def test_metadata_describes_a_topic_once(node, version):
    topics = [MetadataRequestTopic(name=TOPIC)] * TIMES + [MetadataRequestTopic(name="x.")] * TIMES
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=version == 1)
    found = [topic.name for topic in ask(node, request, version).topics]
    assert found == [TOPIC, "x."]


def test_describe_configs_describes_a_resource_once(node):
    resources = [DescribeConfigsResource(resource_type=2, resource_name=TOPIC)] * TIMES
    broker = DescribeConfigsResource(resource_type=4, resource_name="1")
    answer = ask(node, DescribeConfigsRequest(resources=[*resources, broker]), 4)
    assert [(result.resource_type, result.resource_name) for result in answer.results] == [
        (2, TOPIC),
        (4, "1"),
    ]


def test_describe_groups_describes_a_group_once(node):
    answer = ask(node, DescribeGroupsRequest(groups=["one", "two"] * TIMES), 5)
    assert [group.group_id for group in answer.groups] == ["one", "two"]


def test_describe_producers_describes_a_partition_once(node):
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=TOPIC, partition_indexes=[0, 1] * TIMES)] * 2
    )
    (topic,) = ask(node, request, 0).topics
    assert [partition.partition_index for partition in topic.partitions] == [0, 1]


def test_offset_fetch_tells_all_offsets_of_a_group_once(node):
    groups = [OffsetFetchRequestGroup(group_id="one", topics=None)] * TIMES
    assert len(ask(node, OffsetFetchRequest(groups=groups), 8).groups) == 1


def test_list_offsets_refuses_a_partition_that_is_named_twice_and_looks_up_the_others(node):
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1, 0)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=partitions)])
    (topic,) = ask(node, request, 7).topics
    assert [
        (partition.partition_index, partition.error_code) for partition in topic.partitions
    ] == [
        (0, ErrorCode.INVALID_REQUEST),
        (1, ErrorCode.NONE),
    ]


@pytest.mark.parametrize("version", [4, 12])
def test_fetch_reads_a_partition_once(node, version):
    partitions = [FetchPartition(partition=0, partition_max_bytes=1000)] * TIMES
    request = FetchRequest(max_bytes=1000, topics=[FetchTopic(topic=TOPIC, partitions=partitions)])
    (topic,) = ask(node, request, version).responses
    assert [partition.partition_index for partition in topic.partitions] == [0]


def test_produce_appends_what_is_said_last_of_a_partition(node):
    before = end_offset(node)
    data = [PartitionProduceData(index=0, records=batch(b"%d" % number)) for number in range(30)]
    topics = [TopicProduceData(name=TOPIC, partition_data=[one]) for one in data]
    answer = ask(node, ProduceRequest(acks=1, topic_data=topics), 9)
    (topic,) = answer.responses
    (partition,) = topic.partition_responses
    assert (partition.error_code, partition.base_offset) == (ErrorCode.NONE, before)
    assert end_offset(node) == before + 1
    wanted = FetchPartition(partition=0, fetch_offset=before, partition_max_bytes=1000)
    request = FetchRequest(max_bytes=1000, topics=[FetchTopic(topic=TOPIC, partitions=[wanted])])
    (fetched,) = ask(node, request, 12).responses
    assert b"29" in bytes(fetched.partitions[0].records)


def test_delete_records_goes_by_what_is_said_last_of_a_partition(node):
    wanted = [DeleteRecordsPartition(partition_index=1, offset=offset) for offset in (5, 7, 0)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=wanted)])
    (topic,) = ask(node, request, 2).topics
    (partition,) = topic.partitions
    assert (partition.error_code, partition.low_watermark) == (ErrorCode.NONE, 0)


def test_of_a_refused_batch_only_so_many_records_are_named(node):
    far = 1 << 50
    count = 3 * MAX_RECORDS_NAMED_AT_FAULT
    data = PartitionProduceData(index=0, records=batch(b"", far, count))
    request = ProduceRequest(
        acks=1, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
    )
    (topic,) = ask(node, request, 9).responses
    (partition,) = topic.partition_responses
    assert partition.error_code == ErrorCode.INVALID_TIMESTAMP
    assert len(partition.record_errors) == MAX_RECORDS_NAMED_AT_FAULT
