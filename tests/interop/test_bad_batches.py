"""The same bad batches to Apache Kafka and to our broker: the same error codes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from millrace.testing import LocalBroker
from tests.lib.apache_kafka import kafka_libs, running_node
from tests.lib.bad_batches import BAD_BATCHES, GOOD
from tests.lib.raw_kafka import RawConnection

pytestmark = pytest.mark.interop

PRODUCE_VERSION = 9


def produce(connection: RawConnection, records: bytes) -> int:
    partition = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="refusals", partition_data=[partition])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
    response = connection.ask(ApiKey.PRODUCE, PRODUCE_VERSION, request)
    code: int = response.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined]
    return code


def answers(bootstrap: str) -> dict[str, int]:
    """Give the error code of every bad batch; 0 for a good one shows that the topic is there."""
    found: dict[str, int] = {}
    with RawConnection(bootstrap, 30) as connection:
        topic = CreatableTopic(name="refusals", num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        connection.ask(ApiKey.CREATE_TOPICS, 5, request)
        while produce(connection, GOOD):
            pass
        for name, (batch, _) in BAD_BATCHES.items():
            found[name] = produce(connection, batch)
        assert produce(connection, GOOD) == 0
    return found


@pytest.fixture
def ours() -> Iterator[dict[str, int]]:
    with LocalBroker() as broker:
        yield answers(broker.bootstrap_servers)


def test_apache_kafka_refuses_as_we_do(ours: dict[str, int], tmp_path: Path) -> None:
    with running_node(kafka_libs(), tmp_path) as bootstrap:
        theirs = answers(bootstrap)
    different = {
        name: (ours[name], theirs[name])
        for name in BAD_BATCHES
        if ours[name] != theirs[name] and "Kafka" not in name
    }
    assert different == {}
    # The batch that lies in the future does so only beside the clock of the simulated tests.
    assert not [name for name, code in ours.items() if not code and "clock" not in name]
