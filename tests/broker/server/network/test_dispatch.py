"""Answers that come later."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from broker.protocol.api_keys import ApiKey
from broker.protocol.framing import RequestHeader, encode_response, finish
from broker.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from broker.protocol.messages.describe_cluster import DescribeClusterResponse
from broker.server.network.connection import Slot
from broker.server.network.dispatch import Later, RequestContext
from broker.server.network.walks import ITEMS_PER_STEP


class Connection:
    """Keeps what a context does to its connection."""

    def __init__(self) -> None:
        self.peer = SimpleNamespace(host="127.0.0.1")
        self.is_closed = False
        self.slots: list[Any] = []
        self.walks: list[Any] = []

    def new_slot(self) -> Slot:
        self.slots.append(Slot(self))  # type: ignore[arg-type]
        return self.slots[-1]

    def on_slot_done(self) -> None:
        pass

    def complete_in_turns(self, slot: Slot, steps: Any) -> None:
        self.walks.append((slot, steps))

    def close(self) -> None:
        self.is_closed = True


def test_an_answer_that_cannot_be_said_costs_one_client_its_connection(caplog: Any) -> None:
    # Who replies is the metadata quorum, say, and an exception there would end the node.
    connection: Any = Connection()
    context = RequestContext(connection, RequestHeader(ApiKey.DESCRIBE_CLUSTER, 0, 7, None))
    context.defer()
    with caplog.at_level(logging.ERROR):
        context.reply(DescribeClusterResponse(endpoint_type=2))
    assert connection.is_closed
    assert "cannot be said in version 0" in caplog.text


@pytest.mark.parametrize(("count", "is_large"), [(ITEMS_PER_STEP, False), (500, True)])
def test_a_large_answer_that_comes_later_is_encoded_in_pieces(count: int, is_large: bool) -> None:
    connection: Any = Connection()
    header = RequestHeader(ApiKey.CREATE_TOPICS, 5, 7, None)
    topics = [CreatableTopicResult(name=str(number)) for number in range(count)]
    later = Later(RequestContext(connection, header))
    later.answer()
    later.reply(CreateTopicsResponse(topics=topics))
    (slot,) = connection.slots
    assert bool(connection.walks) is is_large
    assert slot.is_done is not is_large
    for at, steps in connection.walks:
        at.complete(finish(steps))
    assert slot.parts == encode_response(header, CreateTopicsResponse(topics=topics))
