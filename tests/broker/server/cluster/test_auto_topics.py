"""What a node says of a topic that clients wait for and that cannot be created."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from broker.config.internal_topics import InternalTopic
from broker.server.cluster.auto_topics import AutoTopics
from broker.server.network.later import Later, Steps
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

OFFSETS = "__consumer_offsets"


def refuse(request: CreateTopicsRequest, version: int, done: Any, *, timeout_ms: int) -> None:
    error = ErrorCode.INVALID_REPLICATION_FACTOR
    results = [
        CreatableTopicResult(name=each.name, error_code=error, error_message="too few brokers")
        for each in request.topics
    ]
    done(CreateTopicsResponse(topics=results))


def run(steps: Steps[Any]) -> None:
    """Continue a handler until its end; what it waits for has happened."""
    later = next(steps)
    try:
        while True:
            later = steps.send(None if later is None else later.value)
    except StopIteration:
        return


def test_an_internal_topic_that_cannot_be_created_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    internal = {OFFSETS: InternalTopic(50, 3, {})}
    config: Any = SimpleNamespace(internal_topics=internal, partition_count=1, replication_factor=1)
    metadata: Any = SimpleNamespace(
        image=SimpleNamespace(topics=SimpleNamespace(by_name={}), brokers={1: None})
    )
    waits: Any = SimpleNamespace(until=lambda check, timeout_ms: Later())
    topics = AutoTopics(config, metadata, refuse, waits, is_complete=lambda name: True)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            run(topics.ensure([OFFSETS, "orders"]))
    assert [record.getMessage() for record in caplog.records] == [
        f"internal topic cannot be created topic={OFFSETS} error=INVALID_REPLICATION_FACTOR"
        " message=too few brokers"
    ]
