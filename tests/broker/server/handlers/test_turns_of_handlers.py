"""Requests with very many entries are answered in many turns, whole and in order."""

from typing import Any

import pytest

from broker.protocol.framing import encode_request
from broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.server.network import turns
from broker.server.network.turns import Turns
from broker.server.network.walks import ITEMS_PER_STEP
from tests.fuzz.in_process import answer_to, in_process_node
from tests.fuzz.valid_requests import BROKER

NAMES = [f"{number:04d}" for number in range(20 * ITEMS_PER_STEP)]
COORDINATORS = FindCoordinatorRequest(key_type=1, coordinator_keys=NAMES)
TOPICS = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in NAMES])


@pytest.mark.parametrize(("request_", "version"), [(COORDINATORS, 4), (TOPICS, 0)])
def test_many_entries_take_many_turns(monkeypatch: pytest.MonkeyPatch, request_, version) -> None:
    taken = 0
    wait = Turns.wait

    def counted(self: Turns, take_turn: Any) -> None:
        nonlocal taken
        taken += 1
        wait(self, take_turn)

    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(Turns, "wait", counted)
    with in_process_node() as node:
        taken = 0
        frame = encode_request(request_.__api_key__, version, 1, "test", request_)[4:]
        answer: Any = answer_to(frame, node.send(BROKER, frame, steps=200))
    assert taken >= len(NAMES) // ITEMS_PER_STEP
    found = (
        [entry.key for entry in answer.coordinators]
        if request_ is COORDINATORS
        else [entry.name for entry in answer.topics]
    )
    assert found == NAMES
