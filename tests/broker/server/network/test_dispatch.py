"""Answers that come later."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from broker.protocol.api_keys import ApiKey
from broker.protocol.framing import RequestHeader, encode_response, finish
from broker.protocol.message import Message
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from broker.protocol.messages.describe_cluster import DescribeClusterResponse
from broker.protocol.messages.elect_leaders import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from broker.server.network.connection import Slot
from broker.server.network.dispatch import (
    LATER,
    STEPS_OF_A_SHORT_WALK,
    AnswerWalk,
    Deferred,
    Later,
    RequestContext,
    _answered,
)
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


def test_an_answer_that_comes_later_at_the_end_of_a_walk_is_encoded_in_pieces() -> None:
    connection: Any = Connection()
    context = RequestContext(connection, RequestHeader(ApiKey.CREATE_TOPICS, 7, 7, None))
    context.defer()
    topics = [CreatableTopicResult(name=str(number)) for number in range(200 * ITEMS_PER_STEP)]

    def walk() -> AnswerWalk:
        yield
        return CreateTopicsResponse(topics=topics)

    context.reply(walk())
    ((_, steps),) = connection.walks
    assert len(list(steps)) > STEPS_OF_A_SHORT_WALK


@pytest.mark.parametrize(("answer", "left"), [(CreateTopicsResponse(), 0), (LATER, 1)])
def test_a_large_request_is_let_go_of_unless_it_is_answered_later(
    answer: Message | Deferred, left: int
) -> None:
    def walk() -> AnswerWalk:
        for _ in range(2 * STEPS_OF_A_SHORT_WALK):
            yield
        return answer

    request = CreateTopicsRequest(topics=[CreatableTopic(name="orders")])
    header = RequestHeader(ApiKey.CREATE_TOPICS, 5, 7, None)
    finish(_answered(header, walk(), request))
    assert len(request.topics) == left


def test_an_answer_of_one_topic_with_many_partitions_is_large_too() -> None:
    connection: Any = Connection()
    header = RequestHeader(ApiKey.ELECT_LEADERS, 2, 7, None)
    partitions = [PartitionResult(partition_id=number) for number in range(500)]
    result = ReplicaElectionResult(topic="orders", partition_result=partitions)
    later = Later(RequestContext(connection, header))
    later.answer()
    later.reply(ElectLeadersResponse(replica_election_results=[result]))
    assert len(connection.walks) == 1


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
