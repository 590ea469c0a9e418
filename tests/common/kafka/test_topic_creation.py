"""Topics on a real broker: created where they are missing, refused where they cannot be joined."""

import asyncio
from collections.abc import Iterator

import pytest

from common.credentials.access import KafkaAccess
from common.kafka.topic_creation import WrongPartitionCountError, ensure_topics
from common.kafka.topics import Topic, compacted
from common.processing.dead_letters import dead_letter_topic
from millstream.testing import LocalBroker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with LocalBroker() as running:
        yield running.bootstrap_servers


def ensure(broker: str, *topics: Topic) -> int:
    return asyncio.run(ensure_topics(KafkaAccess(broker), topics, replication_factor=3))


def test_a_topic_gets_a_replica_on_each_broker_where_there_are_too_few(broker: str) -> None:
    assert ensure(broker, Topic("orders"), compacted("rows", 1)) == 1
    assert ensure(broker, Topic("orders"), compacted("rows", 1)) == 1


def test_a_topic_whose_keys_cannot_meet_others_is_refused(broker: str) -> None:
    ensure(broker, Topic("few", 2))
    with pytest.raises(WrongPartitionCountError, match="few has 2 partitions, needs 6"):
        ensure(broker, Topic("few"))


def test_dead_letters_may_have_any_number_of_partitions(broker: str) -> None:
    ensure(broker, Topic("orders.dead-letter", 6))
    ensure(broker, dead_letter_topic("orders"))
