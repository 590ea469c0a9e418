"""Answers that Apache Kafka 4.3.1 gave to the same requests, where clients' suites look at them."""

import uuid
from collections.abc import Iterator

import pytest

from broker.records.build import build_batch
from common.kafka.errors import ErrorCode
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages import (
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_groups,
    describe_topic_partitions,
    elect_leaders,
    fetch,
    init_producer_id,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_delete,
    produce,
)
from millstream.testing import LocalBroker
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop

NOW_MS = 1_700_000_000_000
FUTURE_MS = 1 << 50
TOPIC_OPERATIONS, CLUSTER_OPERATIONS, GROUP_OPERATIONS = 3576, 8096, 3400
NOT_ASKED_FOR = -(1 << 31)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with LocalBroker() as broker:
        with RawConnection(broker.bootstrap_servers) as connection:
            connection.find_coordinator("any")
        yield broker.bootstrap_servers


@pytest.fixture
def broker(bootstrap: str) -> Iterator[RawConnection]:
    with RawConnection(bootstrap) as connection:
        yield connection


def create(broker: RawConnection, version: int = 5, **settings: str) -> str:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    wanted = create_topics.CreatableTopic(
        name=topic,
        num_partitions=1,
        replication_factor=1,
        configs=[
            create_topics.CreatableTopicConfig(name=name.replace("_", "."), value=value)
            for name, value in settings.items()
        ],
    )
    request = create_topics.CreateTopicsRequest(topics=[wanted], timeout_ms=5_000)
    created = broker.ask(ApiKey.CREATE_TOPICS, version, request).topics[0]
    assert created.error_code == ErrorCode.NONE
    assert created.error_message is None
    return topic


def append(broker: RawConnection, topic: str, batch: bytes) -> produce.PartitionProduceResponse:
    data = produce.PartitionProduceData(index=0, records=batch)
    request = produce.ProduceRequest(
        acks=-1,
        timeout_ms=5_000,
        topic_data=[produce.TopicProduceData(name=topic, partition_data=[data])],
    )
    return broker.ask(ApiKey.PRODUCE, 9, request).responses[0].partition_responses[0]


def batch_of(*keys: bytes | None, timestamp_ms: int = NOW_MS, compression: int = 0) -> bytes:
    return build_batch([(key, b"v", (), timestamp_ms) for key in keys], compression=compression)


@pytest.mark.parametrize("codec", [0, 1])
def test_every_record_without_a_key_is_named_when_a_compacted_topic_refuses(
    broker: RawConnection, codec: int
) -> None:
    topic = create(broker, cleanup_policy="compact")
    answer = append(broker, topic, batch_of(b"a", None, b"b", None, compression=codec))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert (answer.base_offset, answer.log_start_offset) == (-1, 0)
    assert [error.batch_index for error in answer.record_errors] == [1, 3]
    assert "without key" in (answer.record_errors[0].batch_index_error_message or "")
    assert (answer.error_message or "").startswith("One or more records have been rejected")


def test_every_record_out_of_time_is_named(broker: RawConnection) -> None:
    topic = create(broker)
    batch = build_batch([(b"a", b"v", (), NOW_MS), (b"a", b"v", (), FUTURE_MS)])
    answer = append(broker, topic, batch)
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert answer.log_start_offset == 0
    assert [error.batch_index for error in answer.record_errors] == [1]


@pytest.mark.parametrize("version", range(1, 7))
def test_a_topic_named_twice_is_refused_once(broker: RawConnection, version: int) -> None:
    names = ["twice", "twice"]
    request = delete_topics.DeleteTopicsRequest(timeout_ms=5_000)
    if version >= 6:
        request.topics = [delete_topics.DeleteTopicState(name=name) for name in names]
    else:
        request.topic_names = names
    answers = broker.ask(ApiKey.DELETE_TOPICS, version, request).responses
    assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST]


def test_a_deletion_of_nothing_is_no_request(broker: RawConnection) -> None:
    request = delete_topics.DeleteTopicsRequest(
        topics=[delete_topics.DeleteTopicState(name=None)], timeout_ms=5_000
    )
    (answer,) = broker.ask(ApiKey.DELETE_TOPICS, 6, request).responses
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("policy", "code"), [("compact", 44), ("delete", 0)])
def test_records_are_deleted_only_where_the_policy_deletes(
    broker: RawConnection, policy: str, code: int
) -> None:
    topic = create(broker, cleanup_policy=policy)
    append(broker, topic, batch_of(b"a"))
    wanted = delete_records.DeleteRecordsPartition(partition_index=0, offset=1)
    request = delete_records.DeleteRecordsRequest(
        topics=[delete_records.DeleteRecordsTopic(name=topic, partitions=[wanted])],
        timeout_ms=5_000,
    )
    answer = broker.ask(ApiKey.DELETE_RECORDS, 2, request).topics[0].partitions[0]
    assert answer.error_code == code


@pytest.mark.parametrize(
    ("timestamp", "first_version"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 12)]
)
def test_a_special_time_is_known_from_its_version_on(
    broker: RawConnection, timestamp: int, first_version: int
) -> None:
    topic = create(broker)
    append(broker, topic, batch_of(b"a"))
    wanted = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = list_offsets.ListOffsetsRequest(
        replica_id=-1,
        topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=[wanted])],
    )
    for version in range(1, 12):
        answer = broker.ask(ApiKey.LIST_OFFSETS, version, request).topics[0].partitions[0]
        is_known = version >= first_version
        assert answer.error_code == (0 if is_known else ErrorCode.UNSUPPORTED_VERSION), version


def fetch_once(
    broker: RawConnection, topic: str, offset: int, last_fetched_epoch: int = -1
) -> fetch.PartitionData:
    wanted = fetch.FetchPartition(
        partition=0,
        fetch_offset=offset,
        partition_max_bytes=1_000,
        last_fetched_epoch=last_fetched_epoch,
    )
    request = fetch.FetchRequest(
        max_wait_ms=0,
        max_bytes=1_000,
        topics=[fetch.FetchTopic(topic=topic, partitions=[wanted])],
    )
    return broker.ask(ApiKey.FETCH, 12, request).responses[0].partitions[0]


def test_a_fetch_out_of_range_tells_no_offsets(broker: RawConnection) -> None:
    topic = create(broker)
    append(broker, topic, batch_of(b"a"))
    answer = fetch_once(broker, topic, 5)
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (answer.high_watermark, answer.log_start_offset) == (-1, -1)


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (0, 0), (5, 1)])
def test_a_fetch_after_an_epoch_that_never_was_is_out_of_range(
    broker: RawConnection, epoch: int, code: int
) -> None:
    topic = create(broker)
    append(broker, topic, batch_of(b"a"))
    assert fetch_once(broker, topic, 1, epoch).error_code == code


def test_an_offset_of_a_partition_that_does_not_exist_is_not_deleted(
    broker: RawConnection,
) -> None:
    topic = create(broker)
    commit = offset_commit.OffsetCommitRequest(
        group_id=topic,
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=1
                    )
                ],
            )
        ],
    )
    committed = broker.ask(ApiKey.OFFSET_COMMIT, 5, commit)
    assert committed.topics[0].partitions[0].error_code == ErrorCode.NONE
    wanted = [
        offset_delete.OffsetDeleteRequestPartition(partition_index=partition)
        for partition in (0, 7)
    ]
    request = offset_delete.OffsetDeleteRequest(
        group_id=topic,
        topics=[offset_delete.OffsetDeleteRequestTopic(name=topic, partitions=wanted)],
    )
    answer = broker.ask(ApiKey.OFFSET_DELETE, 0, request)
    codes = {each.partition_index: each.error_code for each in answer.topics[0].partitions}
    assert codes == {0: ErrorCode.NONE, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_refused_producer_gets_no_id(broker: RawConnection) -> None:
    request = init_producer_id.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1_000, producer_id=5, producer_epoch=-1
    )
    answer = broker.ask(ApiKey.INIT_PRODUCER_ID, 4, request)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_without_an_authorizer_everything_is_authorized(
    broker: RawConnection, is_asked_for: bool
) -> None:
    topic = create(broker)

    def expected(operations: int) -> int:
        return operations if is_asked_for else NOT_ASKED_FOR

    topics = metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=topic)],
        include_topic_authorized_operations=is_asked_for,
        include_cluster_authorized_operations=is_asked_for,
    )
    answer = broker.ask(ApiKey.METADATA, 9, topics)
    assert answer.cluster_authorized_operations == expected(CLUSTER_OPERATIONS)
    assert answer.topics[0].topic_authorized_operations == expected(TOPIC_OPERATIONS)
    cluster = describe_cluster.DescribeClusterRequest(
        include_cluster_authorized_operations=is_asked_for
    )
    described = broker.ask(ApiKey.DESCRIBE_CLUSTER, 1, cluster)
    assert described.cluster_authorized_operations == expected(CLUSTER_OPERATIONS)
    groups = describe_groups.DescribeGroupsRequest(
        groups=["nobody"], include_authorized_operations=is_asked_for
    )
    group = broker.ask(ApiKey.DESCRIBE_GROUPS, 5, groups).groups[0]
    assert group.authorized_operations == expected(GROUP_OPERATIONS)


def test_topic_partitions_come_with_the_authorized_operations(broker: RawConnection) -> None:
    topic = create(broker)
    request = describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[describe_topic_partitions.TopicRequest(name=topic)]
    )
    answer = broker.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    assert answer.topics[0].topic_authorized_operations == TOPIC_OPERATIONS


def test_an_election_that_is_not_needed_is_refused_partition_by_partition(
    broker: RawConnection,
) -> None:
    topic = create(broker)
    wanted = [
        elect_leaders.TopicPartitions(topic=topic, partitions=[0, 9]),
        elect_leaders.TopicPartitions(topic="nowhere", partitions=[0]),
    ]
    request = elect_leaders.ElectLeadersRequest(topic_partitions=wanted)
    answer = broker.ask(ApiKey.ELECT_LEADERS, 2, request)
    assert [
        [partition.error_code for partition in result.partition_result]
        for result in answer.replica_election_results
    ] == [
        [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    ]
    request = elect_leaders.ElectLeadersRequest(election_type=7, topic_partitions=wanted)
    assert broker.ask(ApiKey.ELECT_LEADERS, 2, request).error_code == ErrorCode.INVALID_REQUEST


def test_no_reassignment_is_under_way(broker: RawConnection) -> None:
    request = list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None)
    answer = broker.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)
    assert (answer.error_code, answer.topics) == (ErrorCode.NONE, [])
