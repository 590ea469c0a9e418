"""Metadata answers between the end of a broker's process and the election of the next leader."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.server.cluster.departures import DOUBT_MS, Departures
from broker.server.cluster.metadata_quorum import MetadataWaits
from broker.server.handlers.cluster import find_coordinator
from broker.server.handlers.cluster.describe_cluster import DescribeCluster
from broker.server.handlers.cluster.find_coordinator import FindCoordinator
from broker.server.handlers.topics.metadata import Metadata
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from common.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from common.kafka.protocol.records.metadata import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tests.lib.served_replica import LISTENER, TOPIC, TOPIC_ID, Context, ServedReplica, epoch_of

FENCED, ALIVE = 1, -1
NAMED_MS = 12_345
LEADER = 1


class Survivor:
    """Broker 2, which follows broker 1, and a client of it."""

    def __init__(self, alive: tuple[int, ...] = (1, 2, 3)) -> None:
        replica = ServedReplica(2)
        self.image, self.loop = replica.image, replica.loop
        metadata: Any = SimpleNamespace(image=self.image, cluster_id="c", leader_id=2)
        self.waits = MetadataWaits(self.loop)
        self.departures = Departures(replica.clock, metadata, self.waits, NAMED_MS)
        self.handler = Metadata(replica.config, metadata, Any, self.departures, Any)
        for broker_id in alive:
            self.change_broker(broker_id, ALIVE)

    def change_broker(self, broker_id: int, fenced: int) -> None:
        self.replay(
            BrokerRegistrationChangeRecord(
                broker_id=broker_id, broker_epoch=epoch_of(broker_id), fenced=fenced
            )
        )

    def replay(self, *records: Message) -> None:
        for record in records:
            self.image.replay(record)
        self.departures.apply(self.image.take_delta())
        self.waits.look()

    def fail_over(self) -> None:
        """Let the controller say that broker 1 is gone."""
        fence = BrokerRegistrationChangeRecord(
            broker_id=LEADER, broker_epoch=epoch_of(LEADER), fenced=FENCED
        )
        self.replay(
            fence,
            PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, leader=3, isr=[2, 3]),
        )

    def ask(self, *topics: str) -> Context:
        context = Context(12)
        wanted = [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted or None, allow_auto_topic_creation=False)
        return context.handle(self.handler.handle, request)


def leader_in(context: Context) -> int:
    answer = context.answer
    assert isinstance(answer, MetadataResponse), answer
    (topic,) = answer.topics
    return int(topic.partitions[0].leader_id)


def named_by(survivor: Survivor) -> list[int]:
    return [broker.node_id for broker in survivor.ask(TOPIC).answer.brokers]


@pytest.fixture
def survivor() -> Survivor:
    return Survivor()


@pytest.mark.parametrize("topics", [(TOPIC,), ()])
def test_who_asks_while_the_leader_is_in_doubt_hears_of_the_next_one(survivor, topics):
    survivor.departures.on_lost(LEADER)
    asked = survivor.ask(*topics)
    assert asked.answer is None
    survivor.fail_over()
    assert leader_in(asked) == 3
    assert leader_in(survivor.ask(*topics)) == 3


def test_who_looks_for_a_coordinator_hears_of_the_next_one_too(survivor, monkeypatch):
    monkeypatch.setitem(find_coordinator.TOPICS, find_coordinator.GROUP, TOPIC)
    ensured: Any = SimpleNamespace(ensure=lambda topics: iter(()))
    handler = FindCoordinator(survivor.handler._metadata, ensured, survivor.departures)
    survivor.departures.on_lost(LEADER)
    context = Context(3).handle(handler.handle, FindCoordinatorRequest(key="group"))
    assert context.answer is None
    survivor.fail_over()
    assert context.answer.node_id == 3


def test_the_doubt_ends_when_the_leader_is_reached_again(survivor):
    survivor.departures.on_lost(LEADER)
    asked = survivor.ask(TOPIC)
    survivor.departures.on_reached(LEADER)
    assert leader_in(asked) == LEADER
    assert not survivor.departures.has_doubts


def test_the_doubt_ends_by_itself(survivor):
    survivor.departures.on_lost(LEADER)
    survivor.loop.advance(DOUBT_MS // 2)
    asked = survivor.ask(TOPIC)
    survivor.loop.advance(DOUBT_MS)
    assert leader_in(asked) == LEADER
    assert leader_in(survivor.ask(TOPIC)) == LEADER, "the next one does not wait"


def test_nobody_waits_for_a_broker_that_leads_nothing_that_was_asked_for(survivor):
    survivor.departures.on_lost(3)
    assert leader_in(survivor.ask(TOPIC)) == LEADER


def test_a_broker_that_is_fenced_is_named_for_a_while(survivor):
    assert named_by(survivor) == [1, 2, 3]
    survivor.fail_over()
    survivor.loop.advance(NAMED_MS - 1)
    assert named_by(survivor) == [1, 2, 3]
    survivor.loop.advance(1)
    assert named_by(survivor) == [2, 3]


def test_a_broker_that_comes_and_goes_again_is_named_from_then_on(survivor):
    survivor.fail_over()
    survivor.change_broker(LEADER, ALIVE)
    survivor.loop.advance(NAMED_MS)
    assert named_by(survivor) == [1, 2, 3]
    survivor.change_broker(LEADER, FENCED)
    survivor.loop.advance(NAMED_MS - 1)
    assert named_by(survivor) == [1, 2, 3]


def test_a_broker_that_has_just_started_names_those_that_went_before():
    late = Survivor(alive=())
    late.fail_over()
    assert named_by(late) == [1, 2, 3]
    late.loop.advance(NAMED_MS)
    assert named_by(late) == [2, 3]


def register(survivor: Survivor, broker_id: int, epoch: int) -> None:
    end_point = BrokerEndpoint(name=LISTENER, host="b", port=9092, security_protocol=0)
    survivor.replay(
        RegisterBrokerRecord(
            broker_id=broker_id, broker_epoch=epoch, fenced=True, end_points=[end_point]
        )
    )


def test_a_new_broker_is_named_only_when_it_is_alive(survivor):
    register(survivor, 9, 99)
    assert named_by(survivor) == [1, 2, 3]


def test_a_broker_that_comes_back_late_is_named_from_its_registration_on(survivor):
    survivor.fail_over()
    survivor.loop.advance(NAMED_MS)
    assert named_by(survivor) == [2, 3]
    register(survivor, LEADER, 99)
    assert named_by(survivor) == [1, 2, 3]


def test_a_broker_that_is_unregistered_is_named_no_more(survivor):
    survivor.fail_over()
    survivor.replay(UnregisterBrokerRecord(broker_id=LEADER, broker_epoch=epoch_of(LEADER)))
    assert named_by(survivor) == [2, 3]


def test_a_description_of_the_cluster_has_the_brokers_that_metadata_names(survivor):
    survivor.fail_over()
    config: Any = SimpleNamespace(node_id=2)
    handler = DescribeCluster(config, survivor.handler._metadata, survivor.departures)
    context = Context(2).handle(handler.handle, DescribeClusterRequest())
    assert isinstance(context.answer, DescribeClusterResponse), context.answer
    described = {broker.broker_id: broker.is_fenced for broker in context.answer.brokers}
    assert described == {1: True, 2: False, 3: False}
