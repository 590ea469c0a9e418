"""The requests of transactional producers, put to a node in this process as frames."""

from collections.abc import Iterator
from typing import Any

import pytest

from broker.coordinator.output import Output
from broker.coordinator.transaction.shard import TransactionShard
from common.kafka.errors import ErrorCode
from common.kafka.protocol.framing import encode_request
from common.kafka.protocol.message import Message
from common.kafka.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from common.kafka.protocol.messages.describe_transactions import DescribeTransactionsRequest
from common.kafka.protocol.messages.end_txn import EndTxnRequest
from common.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from common.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from common.kafka.protocol.messages.list_transactions import ListTransactionsRequest
from tests.fuzz.in_process import InProcessNode, answer_to, in_process_node
from tests.fuzz.valid_requests import BROKER, TOPIC

STEPS = 200
ANSWER_SECONDS = 20.0


@pytest.fixture(scope="module")
def node() -> Iterator[InProcessNode]:
    with in_process_node() as started:
        coordinators = ask(started, FindCoordinatorRequest(key_type=1, key="any"), 3)
        assert coordinators.error_code == ErrorCode.NONE
        yield started


def ask(node: InProcessNode, request: Message, version: int) -> Any:
    frame = encode_request(request.__api_key__, version, 1, "test", request)[4:]
    return answered(node, frame)


def answered(node: InProcessNode, frame: bytes) -> Any:
    return answer_to(frame, node.send(BROKER, frame, answer_seconds=ANSWER_SECONDS))


def init(node: InProcessNode, name: str, version: int = 5) -> Any:
    return ask(
        node,
        InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000),
        version,
    )


def add(node: InProcessNode, name: str, producer: Any, *indexes: int) -> list[tuple[int, int]]:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(indexes))],
    )
    (topic,) = ask(node, request, 3).results_by_topic_v3_and_below
    return [
        (each.partition_index, each.partition_error_code) for each in topic.results_by_partition
    ]


def describe(node: InProcessNode, *names: str) -> list[Any]:
    request = DescribeTransactionsRequest(transactional_ids=list(names))
    found: list[Any] = ask(node, request, 0).transaction_states
    return found


def test_a_producer_begins_adds_partitions_and_is_described(node):
    producer = init(node, "begins")
    assert producer.error_code == ErrorCode.NONE
    assert add(node, "begins", producer, 0, 1, 0) == [(0, 0), (1, 0)]
    (found,) = describe(node, "begins", "begins")
    assert (found.transaction_state, found.producer_id) == ("Ongoing", producer.producer_id)
    assert [(each.topic, each.partitions) for each in found.topics] == [(TOPIC, [0, 1])]


def test_a_partition_that_there_is_not_keeps_all_others_out(node):
    producer = init(node, "unknown")
    codes = [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert add(node, "unknown", producer, 0, 77) == [(0, codes[0]), (77, codes[1])]
    assert describe(node, "unknown")[0].transaction_state == "Empty"


def test_a_group_is_added_though_it_is_the_first_of_all(node):
    producer = init(node, "offsets")
    request = AddOffsetsToTxnRequest(
        transactional_id="offsets",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        group_id="group",
    )
    assert ask(node, request, 4).error_code == ErrorCode.NONE
    (found,) = describe(node, "offsets")
    assert [each.topic for each in found.topics] == ["__consumer_offsets"]


def test_ending_is_told_and_an_abort_of_nothing_completes(node):
    producer = init(node, "ends")

    def end(committed: bool, epoch: int) -> Any:
        request = EndTxnRequest(
            transactional_id="ends",
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            committed=committed,
        )
        return ask(node, request, 5)

    assert end(True, 0).error_code == ErrorCode.INVALID_TXN_STATE
    ended = end(False, 0)
    assert (ended.error_code, ended.producer_epoch) == (ErrorCode.NONE, 1)
    assert describe(node, "ends")[0].transaction_state == "CompleteAbort"


def test_a_commit_is_answered_when_its_markers_are_there_or_take_too_long(node, monkeypatch):
    held: list[tuple[Any, ...]] = []

    def not_yet(shard: TransactionShard, markers: Any, partitions: Any, now: Any) -> Output:
        held.append((shard, markers, list(partitions)))
        return Output()

    monkeypatch.setattr(TransactionShard, "markers_written", not_yet)

    def commit(name: str) -> bytes:
        producer = init(node, name)
        add(node, name, producer, 0)
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=True,
        )
        return encode_request(request.__api_key__, 5, 1, "test", request)[4:]

    monkeypatch.setattr("broker.server.handlers.transactions.end_txn.COMPLETE_MS", 60_000)
    assert node.send(BROKER, commit("held"), steps=STEPS) == []
    assert describe(node, "held")[0].transaction_state == "PrepareCommit"
    monkeypatch.setattr("broker.server.handlers.transactions.end_txn.COMPLETE_MS", 0)
    late = commit("late")
    assert answered(node, late).error_code == ErrorCode.NONE
    assert describe(node, "late")[0].transaction_state == "PrepareCommit"
    monkeypatch.undo()
    transactions = node.node._broker.transactions
    numbers = {shard: number for number, shard in transactions._shards.items()}
    for shard, markers, partitions in held:
        transactions._on_written(numbers[shard], markers, partitions)
    assert describe(node, "held")[0].transaction_state == "CompleteCommit"
    quick = commit("quick")
    assert answered(node, quick).error_code == ErrorCode.NONE
    assert describe(node, "quick")[0].transaction_state == "CompleteCommit"


def test_brokers_ask_for_many_transactions_at_once(node):
    producer = init(node, "many")
    transaction = {
        "transactional_id": "many",
        "producer_id": producer.producer_id,
        "producer_epoch": producer.producer_epoch,
        "topics": [AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
    }
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(**transaction, verify_only=True),
            AddPartitionsToTxnTransaction(**{**transaction, "transactional_id": "foreign"}),
            AddPartitionsToTxnTransaction(**transaction),
            AddPartitionsToTxnTransaction(**transaction, verify_only=True),
        ]
    )
    results = ask(node, request, 5).results_by_transaction
    codes = [each.topic_results[0].results_by_partition[0].partition_error_code for each in results]
    assert codes == [
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]


def test_a_listing_names_what_passes_its_filters(node):
    producer = init(node, "listed")

    def listed(**filters: Any) -> Any:
        return ask(node, ListTransactionsRequest(**filters), 2)

    def names(**filters: Any) -> set[str]:
        return {each.transactional_id for each in listed(**filters).transaction_states}

    assert "listed" in names()
    assert names(producer_id_filters=[producer.producer_id]) == {"listed"}
    assert "listed" in names(state_filters=["Empty"])
    assert "listed" not in names(state_filters=["Ongoing"])
    assert names(state_filters=["Nonsense"]) == set()
    assert listed(state_filters=["Nonsense"]).unknown_state_filters == ["Nonsense"]
    assert names(duration_filter=1 << 60) == set()
    assert names(transactional_id_pattern="l.st(ed|s)") == {"listed"}
    assert names(transactional_id_pattern="list") == set()
    refused = listed(transactional_id_pattern="(")
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_twenty_thousand_repeats_of_one_partition_are_one(node):
    producer = init(node, "repeats")
    assert add(node, "repeats", producer, *[0] * 20_000) == [(0, 0)]


def test_an_id_that_nobody_has_is_not_found(node):
    assert describe(node, "nobody")[0].error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert describe(node, "")[0].error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_init_producer_id_is_served(node, version):
    first, second = (init(node, f"version-{version}", version) for _ in range(2))
    assert (first.error_code, second.error_code) == (0, 0)
    assert (second.producer_id, second.producer_epoch) == (first.producer_id, 1)


def test_very_many_ids_are_listed_in_turns(node):
    transactions = node.node._broker.transactions
    shard = transactions._shards[0]
    template = next(iter(shard.state.transactions.values()), None)
    assert template is not None
    names = [f"bulk-{number}" for number in range(20_000)]
    for name in names:
        shard.state.put(name, template)
    found = {
        each.transactional_id for each in ask(node, ListTransactionsRequest(), 1).transaction_states
    }
    assert found.issuperset(names)
    for name in names:
        shard.state.put(name, None)
