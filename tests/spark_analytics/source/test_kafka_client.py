"""What the planner takes for an answer of Kafka, and what not."""

import pytest
from confluent_kafka import Consumer, KafkaException

from spark_analytics.source.kafka_client import TopicOffsets, UnreachableError, quiet
from spark_analytics.source.options import parse_source_options
from tests.lib.lost_leader import LostLeader


def test_an_end_that_a_lost_leader_did_not_tell_is_asked_for_later():
    options = {
        "kafka.bootstrap.servers": "127.0.0.1:1", "kafka.log_level": "0", "subscribe": "t",
    }  # fmt: skip
    offsets = TopicOffsets(parse_source_options(options, is_stream=True))
    offsets._admin = LostLeader()
    for ask in (offsets.earliest, offsets.latest):
        with pytest.raises(UnreachableError, match="lost before it told"):
            ask([("t", 0)])


def test_a_client_says_nothing_of_brokers_that_are_away(capfd):
    """A streaming query keeps its consumers, and an outage would cost forty lines a second."""
    consumer = Consumer(quiet({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}))
    with pytest.raises(KafkaException):
        consumer.list_topics(timeout=0.3)
    consumer.close()
    assert capfd.readouterr().err == ""
