"""What the planner takes for an answer of Kafka, and what not."""

import pytest
from confluent_kafka import Consumer, KafkaException

from common.kafka.errors import ErrorCode, KafkaError
from spark_analytics.source import kafka_client
from spark_analytics.source.kafka_client import (
    TopicOffsets,
    UnreachableError,
    is_subscribed,
    quiet,
)
from spark_analytics.source.options import parse_source_options


@pytest.fixture
def offsets():
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
    return TopicOffsets(parse_source_options(options, is_stream=True))


@pytest.mark.parametrize("code", [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT])
def test_an_end_that_a_lost_leader_did_not_tell_is_asked_for_later(offsets, code, monkeypatch):
    monkeypatch.setattr(kafka_client, "ask", lambda *_: {("t", 0): KafkaError(code)})
    for ask in (offsets.earliest, offsets.latest):
        with pytest.raises(UnreachableError, match=code.name):
            ask([("t", 0)])


def test_a_missing_partition_has_no_offset(offsets, monkeypatch):
    missing = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    monkeypatch.setattr(kafka_client, "ask", lambda *_: {("t", 0): missing})
    assert offsets.latest([("t", 0)]) == {}


def test_a_cluster_that_is_away_is_unreachable(offsets, monkeypatch):
    monkeypatch.setattr(kafka_client, "REQUEST_TIMEOUT_MS", 200)
    monkeypatch.setattr(kafka_client, "_clients", {})
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1"):
        offsets.partitions()


def test_a_client_says_nothing_of_brokers_that_are_away(capfd):
    """A streaming query keeps its consumers, and an outage would cost forty lines a second."""
    consumer = Consumer(quiet({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}))
    with pytest.raises(KafkaException):
        consumer.list_topics(timeout=0.3)
    consumer.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("pattern", "topic", "is_read"),
    [
        ("^(a+)+$", "a" * 200 + "!", False),
        ("order.*", "orders", True),
        ("(?!x).*", "orders", True),
        ("(?!x).*", "x", False),
    ],
)
def test_a_pattern_reads_a_topic_in_a_time_that_ends(pattern, topic, is_read):
    options = {"kafka.bootstrap.servers": "h:1", "subscribePattern": pattern}
    assert is_subscribed(parse_source_options(options, is_stream=True), (topic, 0)) is is_read
