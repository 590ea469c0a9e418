"""The fuzzer's first requests are valid: every API and version of each listener has an answer."""

from collections.abc import Iterator

import pytest

from common.kafka.protocol.api_keys import ApiKey
from tests.fuzz.in_process import InProcessNode, answer_to, in_process_node
from tests.fuzz.valid_requests import APIS, TOKENS, valid_requests

WAIT_FOR_OTHERS = {ApiKey.JOIN_GROUP, ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS}
"""A member waits for the other members of its group, and the offsets of a share group for a share
coordinator, which has no topic here."""
ANSWER_SECONDS = 10
"""Some handlers ask another part of the node over its own sockets first."""


@pytest.fixture(scope="module")
def node() -> Iterator[InProcessNode]:
    with in_process_node() as started:
        yield started


@pytest.mark.parametrize("listener", APIS)
def test_every_request_of_every_version_is_answered_in_that_version(
    node: InProcessNode, listener: str
) -> None:
    answered = 0
    for request in valid_requests(node.world):
        if request.listener != listener:
            continue
        may_wait = request.api_key in WAIT_FOR_OTHERS
        seconds = 0 if may_wait else ANSWER_SECONDS
        answers = node.send(listener, request.frame(), answer_seconds=seconds)
        if answers or not may_wait:
            answer_to(request.frame(), answers)
            answered += 1
    assert answered > len(APIS[listener])


@pytest.mark.parametrize("mechanism", TOKENS)
def test_the_first_token_of_every_mechanism_is_taken(node: InProcessNode, mechanism: str) -> None:
    for request in valid_requests(node.world):
        if (request.listener, request.api_key) == (mechanism, ApiKey.SASL_AUTHENTICATE):
            answers = node.send(mechanism, request.frame(), answer_seconds=ANSWER_SECONDS)
            answer = answer_to(request.frame(), answers)
            assert answer.error_code == 0
            assert bool(answer.auth_bytes) == mechanism.startswith("SCRAM"), "it asks for another"
