"""Produce in a transaction, markers, and what readers see, at a leader with two followers."""

from typing import Any

import pytest

from broker.records.build import build_batch
from broker.server.handlers.fetch.fetch_read import FetchRead
from broker.server.handlers.transactions.describe import DescribeProducers
from broker.server.handlers.transactions.write_txn_markers import WriteTxnMarkers
from common.kafka.errors import ErrorCode
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from common.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from common.kafka.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from common.kafka.protocol.records.metadata import UnregisterBrokerRecord
from tests.lib.logs import NOW_MS
from tests.lib.scripted_coordinator import ScriptedCoordinator, state_topic
from tests.lib.served_replica import TOPIC, Context, ServedReplica, fetched, produced

READ_COMMITTED = {"isolation_level": 1}


class Leader:
    """A leader, and the transaction coordinator it asks."""

    def __init__(self, **settings: Any) -> None:
        self.node = ServedReplica(**settings)
        self.coordinator = ScriptedCoordinator()
        self.node.replay(*state_topic())
        node = self.node
        is_enabled = node.config.verifies_transactions
        node.partition.log.producers.requires_verification = is_enabled
        node.produce_handler._verifier = self.coordinator.verifier(
            node.loop, node.image, node.partitions, is_enabled=is_enabled
        )
        groups: Any = None
        self.markers = WriteTxnMarkers(node.config, node.logs, node.parked_produces, groups)

    @property
    def log(self) -> Any:
        return self.node.partition.log

    def produce(
        self, sequence: int = 0, *, version: int = 11, epoch: int = 0, **more: Any
    ) -> Context:
        fields = {"producer_id": 9, "is_transactional": True, **more.pop("fields", {})}
        batch = build_batch(
            [(None, b"value", (), NOW_MS)], producer_epoch=epoch, base_sequence=sequence, **fields
        )
        request = ProduceRequest(
            transactional_id="copier",
            acks=more.pop("acks", 1),
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(
                    name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)]
                )
            ],
        )
        for name, value in more.items():
            setattr(request, name, value)
        return self.ask(self.node.produce_handler.handle, request, version)

    def end(self, *, is_commit: bool = True, epoch: int = 0, **more: Any) -> Context:
        marker = WritableTxnMarker(
            producer_id=9,
            producer_epoch=epoch,
            transaction_result=is_commit,
            topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0, 0])],
        )
        for name, value in more.items():
            setattr(marker, name, value)
        return self.ask(self.markers.handle, WriteTxnMarkersRequest(markers=[marker]), 2)

    def ask(self, handle: Any, request: Message, version: int) -> Context:
        """Handle a request, step by step; a walk that waits goes on by itself."""
        return Context(version).handle(handle, request)

    def begin(self, **more: Any) -> None:
        """Have the first batch of a transaction appended."""
        self.produce(**more)
        self.coordinator.answer()

    def replicate(self) -> None:
        end_offset = self.log.log_end_offset
        self.node.follow(2, end_offset)
        self.node.follow(3, end_offset)


def marker_code(context: Context) -> int:
    ((topic,),) = (marker.topics for marker in context.answer.markers)
    (result,) = topic.partitions
    code: int = result.error_code
    return code


def test_the_first_batch_of_a_transaction_waits_for_the_coordinators_word():
    leader = Leader()
    first = leader.produce()
    assert first.answer is None
    assert leader.log.log_end_offset == 0
    (asked,) = leader.coordinator.transactions
    assert (asked.transactional_id, asked.producer_id, asked.producer_epoch) == ("copier", 9, 0)
    assert asked.verify_only
    assert [(topic.name, topic.partitions) for topic in asked.topics] == [(TOPIC, [0])]
    leader.coordinator.answer()
    assert produced(first) == (0, 0)
    assert produced(leader.produce(1)) == (0, 1), "the others ask nobody"
    assert not leader.coordinator.asked


def test_a_leader_adds_the_partition_for_a_producer_with_an_epoch_for_each_transaction():
    leader = Leader()
    leader.produce(version=12)
    (asked,) = leader.coordinator.transactions
    assert not asked.verify_only


@pytest.mark.parametrize(
    ("said", "version", "told"),
    [
        (ErrorCode.INVALID_TXN_STATE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 10, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, 11, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.TRANSACTION_ABORTABLE, 12, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.PRODUCER_FENCED, 11, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, 11, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_a_refusal_is_told_in_the_words_of_the_version(said, version, told):
    leader = Leader()
    waits = leader.produce(version=version)
    leader.coordinator.answer(said)
    assert produced(waits)[0] == told
    assert leader.log.log_end_offset == 0


def test_a_coordinator_that_cannot_be_asked_is_asked_later():
    leader = Leader()
    waits = leader.produce()
    leader.coordinator.lose()
    assert produced(waits)[0] == ErrorCode.NOT_ENOUGH_REPLICAS
    waits = leader.produce()
    leader.coordinator.refuse_all(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    assert produced(waits)[0] == ErrorCode.INVALID_TXN_STATE
    waits = leader.produce()
    leader.node.replay(UnregisterBrokerRecord(broker_id=3, broker_epoch=103))
    leader.node.produce_handler._verifier._peers.on_brokers_changed()
    leader.node.loop.advance()
    assert produced(waits)[0] == ErrorCode.NOT_ENOUGH_REPLICAS
    assert produced(leader.produce())[0] == ErrorCode.NOT_ENOUGH_REPLICAS, "nobody to ask"
    assert leader.coordinator.is_closed


def test_a_producer_that_was_early_is_asked_for_again_for_a_while():
    leader = Leader()
    waits = leader.produce(version=12)
    for _ in range(6):
        leader.coordinator.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
        leader.node.loop.advance(20)
    assert produced(waits)[0] == ErrorCode.CONCURRENT_TRANSACTIONS
    waits = leader.produce(version=12)
    leader.coordinator.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    leader.node.loop.advance(20)
    leader.coordinator.answer()
    assert produced(waits) == (0, 0)


def test_a_transaction_that_is_aborted_while_a_batch_waits_gets_nothing_more():
    """The coordinator's word is older than the abort (KIP-890)."""
    leader = Leader()
    waits = leader.produce()
    leader.end(is_commit=False)
    leader.coordinator.answer()
    assert produced(waits)[0] == ErrorCode.INVALID_TXN_STATE
    assert leader.log.log_end_offset == 1


@pytest.mark.parametrize("early", [[], [ErrorCode.CONCURRENT_TRANSACTIONS]])
def test_the_marker_of_the_transaction_before_may_come_while_the_next_one_is_asked_for(early):
    """A producer that has its new epoch does not wait for the markers (KIP-890)."""
    leader = Leader()
    first = leader.produce(version=12)
    leader.coordinator.answer()
    waits = leader.produce(version=12, epoch=1)
    for code in early:
        leader.coordinator.answer(code)
    leader.end(epoch=1, transaction_version=2)
    leader.node.loop.advance(20)
    leader.coordinator.answer()
    leader.node.loop.advance(20)
    if not early:
        leader.coordinator.answer()
    assert (produced(first), produced(waits)) == ((0, 0), (0, 2))


def test_one_request_asks_for_many_transactions_each_once():
    leader = Leader()
    leader.produce()
    for name in ("a", "b", "a"):
        leader.produce(transactional_id=name)
    leader.coordinator.answer()
    assert [each.transactional_id for each in leader.coordinator.transactions] == ["a", "b"]
    leader.coordinator.answer()
    assert [each.transactional_id for each in leader.coordinator.transactions] == ["a"]


def test_without_verification_nobody_is_asked_but_to_add():
    leader = Leader(settings={"transaction.partition.verification.enable": "false"})
    assert produced(leader.produce(version=11)) == (0, 0)
    leader.end()
    waits = leader.produce(0, epoch=1, version=12)
    leader.coordinator.answer()
    assert produced(waits) == (0, 2)


def test_transactional_records_need_a_transactional_id():
    leader = Leader()
    refused = leader.produce(transactional_id=None)
    assert produced(refused)[0] == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_request_has_one_transactional_producer():
    leader = Leader()
    batches = [
        build_batch(
            [(None, b"v", (), NOW_MS)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        for producer_id in (1, 2)
    ]
    data = [PartitionProduceData(index=n, records=batch) for n, batch in enumerate(batches)]
    refused = leader.produce(topic_data=[TopicProduceData(name=TOPIC, partition_data=data)])
    codes = {each.error_code for each in refused.answer.responses[0].partition_responses}
    assert codes == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}


def test_a_marker_is_answered_when_every_replica_in_sync_has_it():
    leader = Leader()
    leader.begin()
    ends = leader.end()
    assert leader.log.log_end_offset == 2, "a partition that is named twice gets one marker"
    assert ends.answer is None
    leader.replicate()
    assert marker_code(ends) == 0
    assert leader.log.last_stable_offset == 2


def test_a_marker_takes_no_longer_than_the_request_timeout():
    leader = Leader()
    ends = leader.end()
    leader.node.loop.advance(30_000)
    assert marker_code(ends) == ErrorCode.REQUEST_TIMED_OUT


def test_a_marker_needs_enough_replicas_in_sync():
    leader = Leader(isr=(1,))
    assert marker_code(leader.end()) == ErrorCode.NOT_ENOUGH_REPLICAS


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"epoch": -1}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"producer_id": -1}, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        ({"epoch": 2}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ({"epoch": 3, "transaction_version": 2}, ErrorCode.INVALID_PRODUCER_EPOCH),
        ({"epoch": 3, "coordinator_epoch": 4}, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_a_marker_that_may_not_be_written_is_refused(fields, code):
    leader = Leader()
    leader.end(epoch=3, coordinator_epoch=5)
    leader.begin(epoch=3)
    end_offset = leader.log.log_end_offset
    assert marker_code(leader.end(**{"coordinator_epoch": 5, **fields})) == code
    assert leader.log.log_end_offset == end_offset


def test_a_marker_for_what_is_led_elsewhere_is_told_so():
    leader = Leader(leader=2)
    assert marker_code(leader.end()) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    topics = [WritableTxnMarkerTopic(name="nowhere", partition_indexes=[0])]
    assert marker_code(leader.end(topics=topics)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_leadership_that_is_lost_while_a_marker_waits_is_told():
    leader = Leader()
    ends = leader.end()
    leader.node.change(leader=2)
    assert marker_code(ends) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_who_reads_what_is_committed_waits_for_the_marker_however_little_it_weighs():
    leader = Leader()
    leader.begin()
    leader.produce(1)
    leader.replicate()
    reads = leader.node.fetch(0, min_bytes=100, request=READ_COMMITTED)
    assert reads.answer is None
    leader.end(is_commit=False)
    leader.replicate()
    leader.node.loop.advance()
    found = fetched(reads)
    assert found.last_stable_offset == 3
    (aborted,) = found.aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (9, 0)


def test_who_reads_what_is_committed_is_not_looked_at_for_what_is_not_decided(monkeypatch):
    leader, looks, run = Leader(), [], FetchRead.run

    def counted(read, asked):
        looks.append(read.question.follower)
        run(read, asked)

    leader.begin()
    leader.replicate()
    reads = leader.node.fetch(0, request=READ_COMMITTED)
    monkeypatch.setattr(FetchRead, "run", counted)
    leader.produce(1)
    leader.replicate()
    leader.node.loop.advance()
    assert (reads.answer, looks.count(None)) == (None, 0)
    leader.end()
    leader.replicate()
    leader.node.loop.advance()
    assert fetched(reads).records
    assert looks.count(None) == 1


def test_who_reads_all_does_not_wait():
    leader = Leader()
    leader.begin()
    leader.replicate()
    found = fetched(leader.node.fetch(0))
    assert found.records
    assert (found.last_stable_offset, found.aborted_transactions) == (0, None)


def test_a_follower_is_given_what_is_open():
    leader = Leader()
    leader.begin()
    assert fetched(leader.node.follow(2, 0)).records


def test_what_is_open_is_described():
    """By this kafka-transactions finds a transaction that hangs (KIP-664)."""
    leader = Leader()
    leader.end(coordinator_epoch=7)
    leader.begin()
    leader.produce(1)
    handler = DescribeProducers(leader.node.partitions)
    request = DescribeProducersRequest(topics=[TopicRequest(name=TOPIC, partition_indexes=[0])])
    (topic,) = leader.ask(handler.handle, request, 0).answer.topics
    ((found,),) = (each.active_producers for each in topic.partitions)
    assert (found.producer_id, found.producer_epoch, found.last_sequence) == (9, 0, 1)
    assert (found.coordinator_epoch, found.current_txn_start_offset) == (7, 1)
    assert found.last_timestamp == NOW_MS


def test_a_transaction_that_hangs_is_ended_by_an_administrator():
    """With what was described, and no version of transactions: as kafka-transactions abort does."""
    leader = Leader()
    leader.begin()
    leader.end(is_commit=False, epoch=0, coordinator_epoch=-1)
    leader.replicate()
    assert leader.log.last_stable_offset == 2
