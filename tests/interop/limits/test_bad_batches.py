"""The same bad batches to Apache Kafka and to our broker: the same error codes."""

import pytest

from broker.records.batch import split_batches
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from common.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from millstream.testing import LocalBroker
from tests.lib.bad_batches import BAD_BATCHES, GOOD, REPAIRED
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop

PRODUCE_VERSION = 9
FETCH_VERSION = 11


def produce(connection: RawConnection, records: bytes) -> int:
    partition = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="refusals", partition_data=[partition])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
    response = connection.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request)
    code: int = response.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined]
    return code


def produce_each(bootstrap: str) -> dict[str, int]:
    """Give the error code of every bad batch; 0 for a good one shows that the topic is there."""
    found: dict[str, int] = {}
    with RawConnection(bootstrap, 60) as connection:
        topic = CreatableTopic(name="refusals", num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        connection.ask(ApiKey.CREATE_TOPICS, 5, request)
        while produce(connection, GOOD):
            pass
        for name, (batch, _) in BAD_BATCHES.items():
            found[name] = produce(connection, batch)
        assert produce(connection, GOOD) == 0
    return found


def stored_after_each(bootstrap: str) -> dict[str, tuple[object, ...]]:
    """Produce each batch that is put right; give how it reads then, counted from its offset."""
    found: dict[str, tuple[object, ...]] = {}
    with RawConnection(bootstrap, 60) as connection:
        for name, batch in REPAIRED.items():
            partition = PartitionProduceData(index=0, records=batch)
            topic = TopicProduceData(name="refusals", partition_data=[partition])
            request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
            response = connection.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request)
            answer = response.responses[0].partition_responses[0]  # type: ignore[attr-defined]
            assert answer.error_code == 0, name
            found[name] = read_at(connection, answer.base_offset)
    return found


def read_at(connection: RawConnection, offset: int) -> tuple[object, ...]:
    """Give a batch's header, but for offset, sizes, epoch and CRC, and its records."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic="refusals", partitions=[partition])
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[topic])
    response = connection.ask(ApiKey.FETCH, FETCH_VERSION, request)
    records = response.responses[0].partitions[0].records  # type: ignore[attr-defined]
    batch = next(iter(split_batches(records)))
    assert batch.has_valid_crc
    header = batch.header
    assert header.base_offset == offset
    first = [record._replace(offset=record.offset - offset) for record in batch.records()]
    return (header.attributes, header.base_timestamp, header.max_timestamp, *header[6:7], first)


def test_apache_kafka_refuses_and_repairs_as_we_do(apache_kafka: str) -> None:
    with LocalBroker() as broker:
        ours = produce_each(broker.bootstrap_servers)
        our_batches = stored_after_each(broker.bootstrap_servers)
    theirs = produce_each(apache_kafka)
    their_batches = stored_after_each(apache_kafka)
    different = {
        name: (ours[name], theirs[name])
        for name in BAD_BATCHES
        if ours[name] != theirs[name] and "Kafka" not in name
    }
    assert different == {}
    assert [name for name, code in ours.items() if not code] == []
    assert our_batches == their_batches
