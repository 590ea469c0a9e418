"""A client without rights, and names of all lengths: all is answered, and the log stays short.

The node raises what it would log with a stack trace.
"""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from broker.server.authorization.audit import MAX_LINES
from common.kafka.protocol.api_keys import ApiKey
from common.kafka.protocol.message import Struct
from tests.fuzz.in_process import WITHOUT_RIGHTS, InProcessNode, answer_to, in_process_node
from tests.fuzz.valid_requests import (
    GROUP,
    LOGGED_IN,
    TOPIC,
    TRANSACTIONAL_ID,
    Optional,
    valid_requests,
)

NAMES = {GROUP, TOPIC, TRANSACTIONAL_ID}
MAX_LINE = 2_000
LENGTHS = (0, 1, 249, 250, 1_024, 1_025, 8_000)
ANSWER_SECONDS = 10


@pytest.fixture(scope="module")
def node() -> Iterator[InProcessNode]:
    with in_process_node(WITHOUT_RIGHTS) as started:
        yield started


def with_names(value: Any, name: str) -> Any:
    """Put a name in the place of every name of a topic, a group or a transactional id."""
    if isinstance(value, Struct):
        for field in value.__fields__:
            part = getattr(value, field)
            if (named := with_names(part, name)) is not part:
                setattr(value, field, named)
        return value
    if isinstance(value, list):
        return [with_names(each, name) for each in value]
    return name if isinstance(value, str) and value in NAMES else value


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("letter", ["n", "\x01"])
def test_every_request_is_answered_and_the_log_stays_short(
    node: InProcessNode, caplog: pytest.LogCaptureFixture, length: int, letter: str
) -> None:
    name, audit = letter * length, node.quorum.audit
    audit._ends_at_ms, before = 0, audit.denials
    with caplog.at_level(logging.INFO, logger="millstream.authorizer"):
        for request in valid_requests(node.world._replace(optional=Optional.FILLED)):
            if request.listener != LOGGED_IN:
                continue
            request = request._replace(message=with_names(request.message, name))
            answers = node.send(LOGGED_IN, request.frame(), answer_seconds=ANSWER_SECONDS)
            # Kafka closes the connection of a Produce that wants no answer.
            if request.api_key is not ApiKey.PRODUCE:
                answer_to(request.frame(), answers)
    assert audit.denials - before > 100
    assert 50 < len(caplog.messages) <= MAX_LINES + 1
    assert all(len(line) < MAX_LINE for line in caplog.messages)
