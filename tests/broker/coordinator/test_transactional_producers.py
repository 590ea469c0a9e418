"""InitProducerId with a transactional id, partitions and offsets, time-outs, expiration."""

import pytest

from broker.coordinator.output import Output, Reply, ShardContext
from broker.coordinator.transaction.config import MAX_ENDED_AT_ONCE
from broker.coordinator.transaction.describe import TransactionFilter
from broker.coordinator.transaction.parking import PARKED_MS
from broker.coordinator.transaction.refusals import refuse
from broker.coordinator.transaction.state import TransactionState as State
from common.kafka.errors import ErrorCode
from common.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from common.kafka.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.lib.transaction_scenario import ID, OFFSETS, T0, T1, V1, Scenario

NONE, FENCED = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
UNKNOWN = ErrorCode.INVALID_PRODUCER_ID_MAPPING


def code(answer) -> ErrorCode:
    return ErrorCode(answer.error_code)


# --- InitProducerId ---


def test_each_producer_that_begins_fences_the_one_before():
    scenario = Scenario()
    first, second = scenario.begin(), scenario.begin()
    assert second == (first[0], first[1] + 1)
    assert scenario.add(first, T0) == {FENCED}
    assert scenario.add(second, T0) == {NONE}


@pytest.mark.parametrize("server_version", [0, 2])
def test_a_new_producer_has_the_open_transaction_aborted_first(server_version):
    scenario = Scenario(transaction_version=server_version)
    first = scenario.begin()
    scenario.add(first, T0)
    assert code(scenario.init()) == CONCURRENT
    (markers,) = scenario.markers
    assert (markers.producer_epoch, markers.is_commit) == (first[1] + 1, False)
    assert code(scenario.init()) == CONCURRENT
    scenario.write_markers()
    assert scenario.begin() == (first[0], first[1] + 2)
    assert scenario.add(first, T0) == {FENCED}


def test_a_producer_gets_its_next_epoch_and_hears_it_again():
    scenario = Scenario()
    scenario.begin()
    producer_id, epoch = scenario.begin()
    assert scenario.begin(producer=(producer_id, epoch)) == (producer_id, epoch + 1)
    assert scenario.begin(producer=(producer_id, epoch)) == (producer_id, epoch + 1)
    assert code(scenario.init((producer_id, epoch - 1))) == FENCED


def test_a_producer_that_was_replaced_gets_no_epoch_and_aborts_nothing():
    scenario = Scenario()
    first = scenario.begin()
    second = scenario.begin()
    scenario.add(second, T0)
    assert code(scenario.init(first)) == FENCED
    assert code(scenario.init(first, version=3)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert code(scenario.init((first[0] + 77, 0))) == FENCED
    assert scenario.transaction().state is State.ONGOING
    assert scenario.ended(second)


def test_used_up_epochs_give_a_new_id_and_its_answer_can_be_asked_for_again():
    scenario = Scenario()
    old_id, _ = scenario.begin()
    scenario.force(producer_epoch=32766)
    new = scenario.begin(producer=(old_id, 32766))
    assert new == (old_id + 1, 0)
    assert scenario.begin(producer=(old_id, 32766)) == new
    assert code(scenario.init((old_id, 32765))) == FENCED


def test_fencing_at_the_last_epoch_leaves_room_for_the_marker():
    scenario = Scenario()
    old_id, _ = scenario.begin()
    scenario.force(producer_epoch=32766)
    scenario.add((old_id, 32766), T0)
    assert code(scenario.init()) == CONCURRENT
    assert scenario.markers[0].producer_epoch == 32767
    scenario.write_markers()
    new = scenario.begin()
    assert new[0] > old_id
    assert scenario.add(new, T0) == {NONE}


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_that_is_not_allowed(timeout_ms):
    answer = Scenario().init(timeout_ms=timeout_ms)
    assert code(answer) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize("name", ["", "x" * 40_000])
def test_a_transactional_id_that_nobody_can_have(name):
    scenario = Scenario()
    assert code(scenario.init(name=name)) == ErrorCode.INVALID_REQUEST
    assert scenario.add((1, 1), T0, name=name) == {ErrorCode.INVALID_REQUEST}
    assert code(scenario.describe(name)) == ErrorCode.INVALID_REQUEST
    assert scenario.log == []


def test_half_of_an_identity_is_refused():
    assert code(Scenario().init((5, -1))) == ErrorCode.INVALID_REQUEST


def test_without_an_id_at_hand_a_producer_asks_again():
    scenario = Scenario()
    scenario.producer_ids = iter(())
    assert code(scenario.init()) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


# --- partitions ---


def test_partitions_are_added_once():
    scenario = Scenario()
    producer = scenario.begin()
    assert scenario.add(producer, T0) == {NONE}
    written = len(scenario.log)
    assert scenario.add(producer, T0) == {NONE}
    assert len(scenario.log) == written
    assert scenario.add(producer, T0, T1) == {NONE}
    assert scenario.add_offsets(producer) == NONE
    assert scenario.transaction().partitions == {T0, T1, OFFSETS}


def test_a_partition_is_verified_only_while_it_belongs_to_the_transaction():
    scenario = Scenario()
    producer = scenario.begin()
    verify = {"version": 4, "verify_only": True}
    assert scenario.add(producer, T0, **verify) == {ErrorCode.TRANSACTION_ABORTABLE}
    scenario.add(producer, T0)
    assert scenario.add(producer, T0, **verify) == {NONE}
    assert scenario.add(producer, T0, T1, **verify) == {NONE, ErrorCode.TRANSACTION_ABORTABLE}
    assert scenario.end(producer, version=V1) == NONE
    assert scenario.add(producer, T0, **verify) == {CONCURRENT}
    scenario.write_markers()
    assert scenario.add(producer, T0, **verify) == {ErrorCode.TRANSACTION_ABORTABLE}
    assert scenario.transaction().state is State.COMPLETE_COMMIT


def test_brokers_add_nothing_while_the_transaction_before_is_being_ended():
    scenario = Scenario()
    producer = scenario.begin()
    scenario.add(producer, T0)
    after = scenario.ended(producer)
    assert scenario.add(after, T1, version=5) == {CONCURRENT}
    scenario.write_markers()
    assert scenario.add(after, T1, version=5) == {NONE}


# --- parked: a producer goes on before its markers are written ---


class EarlyProducer:
    """A producer that begins its next transaction while the last one is being ended."""

    def __init__(self) -> None:
        self.scenario = Scenario()
        self.producer = self.scenario.begin()
        self.scenario.add(self.producer, T0)
        assert self.scenario.end(self.producer, version=V1) == NONE
        (self.markers,) = self.scenario.markers

    def add(self, token: str = "early") -> Output:
        request = AddPartitionsToTxnTransaction(
            transactional_id=ID,
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            topics=[AddPartitionsToTxnTopic(name="orders", partitions=[1])],
        )
        shard, now = self.scenario.shard, self.scenario.now
        return shard.add_partitions(token, ShardContext(3), request, now)

    def complete(self) -> Output:
        shard, now = self.scenario.shard, self.scenario.now
        return shard.markers_written(self.markers, [T0], now)


def codes_of(replies: list[Reply]) -> list[tuple[object, int]]:
    return [
        (token, partition.partition_error_code)
        for token, response in replies
        for topic in response.topic_results
        for partition in topic.results_by_partition
    ]


def test_who_comes_early_begins_with_what_completes_the_transaction_before():
    early = EarlyProducer()
    assert early.add() == Output()
    done = early.complete()
    assert codes_of(done.replies) == [("early", NONE)]
    assert len(done.records) == 2
    assert early.scenario.transaction().state is State.ONGOING
    assert early.scenario.transaction().partitions == {T1}


def test_who_comes_early_does_not_wait_for_long():
    early = EarlyProducer()
    early.add()
    shard, scenario = early.scenario.shard, early.scenario
    assert shard.next_deadline_ms() == PARKED_MS
    scenario.now_ms = PARKED_MS
    assert codes_of(shard.on_deadline(scenario.now).replies) == [("early", CONCURRENT)]
    assert early.complete().replies == []


def test_one_waits_and_no_more():
    early = EarlyProducer()
    early.add()
    assert codes_of(early.add("second").replies) == [("second", CONCURRENT)]
    assert codes_of(early.complete().replies) == [("early", NONE)]


def test_who_waits_is_told_that_the_coordinator_moved():
    early = EarlyProducer()
    early.add()
    moved = early.scenario.shard.unload(ErrorCode.NOT_COORDINATOR)
    assert codes_of(moved) == [("early", ErrorCode.NOT_COORDINATOR)]


def test_who_waits_and_goes_begins_nothing():
    early = EarlyProducer()
    early.add()
    early.scenario.shard.forget("early", early.scenario.now)
    assert early.complete().replies == []
    assert early.scenario.transaction().state is State.COMPLETE_COMMIT


def test_who_waits_and_is_replaced_meanwhile_is_told_so():
    early = EarlyProducer()
    early.add()
    early.scenario.force(producer_epoch=early.producer[1] + 1)
    assert codes_of(early.complete().replies) == [("early", FENCED)]


@pytest.mark.parametrize(
    ("version", "fenced"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, FENCED)]
)
def test_who_is_not_known_adds_nothing(version, fenced):
    scenario = Scenario()
    producer_id, epoch = scenario.begin()
    assert scenario.add((producer_id, epoch), T0, name="other", version=version) == {UNKNOWN}
    assert scenario.add((producer_id + 1, epoch), T0, version=version) == {UNKNOWN}
    assert scenario.add((producer_id, epoch + 1), T0, version=version) == {fenced}
    assert scenario.add((producer_id, -1), T0, version=version) == {fenced}
    assert scenario.add_offsets((producer_id, -1), version=version) == fenced
    assert scenario.transaction().state is State.EMPTY


def test_a_transaction_that_no_batch_can_hold_is_refused_and_nothing_changes():
    scenario = Scenario(max_batch_bytes=400)
    producer = scenario.begin()
    many = [T0._replace(partition=index) for index in range(200)]
    assert scenario.add(producer, *many) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert scenario.transaction().state is State.EMPTY


# --- markers ---


def test_the_last_marker_completes_a_transaction():
    scenario = Scenario()
    producer = scenario.begin()
    scenario.add(producer, T0, T1)
    scenario.ended(producer)
    (markers,) = scenario.markers
    scenario.take(scenario.shard.markers_written(markers, [T1], scenario.now))
    assert scenario.transaction().state is State.PREPARE_COMMIT
    assert [(each.topic, each.partitions) for each in scenario.describe().topics] == [
        ("orders", [0])
    ]
    scenario.take(scenario.shard.markers_written(markers, [T1, T0], scenario.now))
    assert scenario.transaction().state is State.COMPLETE_COMMIT
    assert scenario.transaction().partitions == frozenset()


def test_a_marker_of_a_transaction_before_completes_no_other():
    scenario = Scenario()
    producer = scenario.begin()
    scenario.add(producer, T0)
    assert scenario.end(producer, version=V1) == NONE
    (old,) = scenario.markers
    scenario.write_markers()
    scenario.add(producer, T0)
    assert scenario.end(producer, version=V1, commit=False) == NONE
    scenario.take(scenario.shard.markers_written(old, [T0], scenario.now))
    assert scenario.transaction().state is State.PREPARE_ABORT


def test_whoever_loads_the_shard_sends_all_markers_again():
    scenario = Scenario()
    producer = scenario.begin()
    scenario.add(producer, T0, T1)
    scenario.ended(producer, commit=False)
    (markers,) = scenario.markers
    scenario.take(scenario.shard.markers_written(markers, [T0], scenario.now))
    scenario.reload()
    (again,) = scenario.markers
    assert (again.partitions, again.is_commit) == ((T0, T1), False)
    scenario.write_markers()
    assert scenario.transaction().state is State.COMPLETE_ABORT


def test_very_many_that_were_being_ended_are_gone_on_with_turn_by_turn():
    scenario = Scenario()
    count = 5 * MAX_ENDED_AT_ONCE // 2
    for number in range(count):
        name = f"id-{number}"
        producer = scenario.begin(name=name)
        scenario.add(producer, T0, name=name)
        assert scenario.end(producer, name=name) == NONE
    scenario.reload()
    assert len(scenario.markers) == MAX_ENDED_AT_ONCE
    scenario.take(scenario.shard.on_deadline(scenario.now))
    assert len(scenario.markers) == 2 * MAX_ENDED_AT_ONCE
    scenario.advance(0)
    assert len({each.transactional_id for each in scenario.markers}) == count


# --- time ---


@pytest.mark.parametrize("server_version", [0, 2])
def test_a_transaction_that_takes_too_long_is_aborted(server_version):
    scenario = Scenario(transaction_version=server_version)
    producer = scenario.begin(timeout_ms=25_000)
    scenario.add(producer, T0)
    scenario.advance(25_000)
    assert scenario.transaction().state is State.ONGOING
    scenario.advance(10_000)
    assert scenario.transaction().state is State.PREPARE_ABORT
    assert scenario.markers[0].producer_epoch == producer[1] + 1
    assert scenario.end(producer, version=V1) == FENCED


def test_after_a_time_out_a_producer_of_version_2_goes_on_with_the_next_epoch():
    scenario = Scenario()
    producer = scenario.begin(timeout_ms=5_000)
    scenario.add(producer, T0)
    scenario.advance(20_000)
    scenario.write_markers()
    assert scenario.end(producer, commit=True) == ErrorCode.INVALID_TXN_STATE
    assert scenario.ended(producer, commit=False) == (producer[0], producer[1] + 1)


def test_a_time_out_counts_from_the_first_partition_also_after_a_reload():
    scenario = Scenario()
    producer = scenario.begin(timeout_ms=30_000)
    scenario.advance(50_000)
    scenario.add(producer, T0)
    scenario.advance(25_000)
    scenario.add(producer, T1)
    scenario.reload()
    scenario.advance(16_000)
    assert scenario.transaction().state is State.PREPARE_ABORT


def test_ids_that_nobody_uses_are_forgotten():
    scenario = Scenario(expiration_ms=7_200_000)
    producer = scenario.begin()
    scenario.begin(name="open", timeout_ms=900_000)
    scenario.begin(name="used")
    scenario.add(scenario.begin(name="open", timeout_ms=900_000), T0, name="open")
    scenario.advance(3_700_000)
    scenario.begin(name="used")
    scenario.write_markers()
    scenario.advance(3_700_000)
    assert ID not in scenario.shard.state.transactions
    assert set(scenario.shard.state.transactions) == {"used", "open"}
    assert [value for key, value in scenario.log if ID.encode() in key][-1] is None
    assert scenario.add(producer, T0) == {UNKNOWN}
    scenario.reload()
    assert ID not in scenario.shard.state.transactions
    assert code(scenario.describe()) == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_a_sweep_over_very_many_goes_turn_by_turn():
    scenario = Scenario()
    count = 5 * MAX_ENDED_AT_ONCE // 2
    for number in range(count):
        name = f"id-{number}"
        scenario.add(scenario.begin(name=name, timeout_ms=1_000), T0, name=name)
    scenario.now_ms += 10_000
    turns = 0
    while scenario.shard.next_deadline_ms() <= scenario.now_ms:
        scenario.take(scenario.shard.on_deadline(scenario.now))
        turns += 1
    assert turns == 3
    assert len(scenario.markers) == count
    assert scenario.shard.next_deadline_ms() == 3_600_000


# --- what there is ---


def test_a_transaction_is_described():
    scenario = Scenario()
    producer_id, epoch = scenario.begin()
    scenario.add((producer_id, epoch), T1, T0)
    found = scenario.describe()
    assert (found.error_code, found.transaction_state) == (NONE, "Ongoing")
    assert (found.producer_id, found.producer_epoch) == (producer_id, epoch)
    assert found.transaction_timeout_ms == 60_000
    assert found.transaction_start_time_ms == scenario.now.timestamp_ms
    assert [(each.topic, each.partitions) for each in found.topics] == [("orders", [0, 1])]


def test_a_listing_is_filtered():
    scenario = Scenario()
    producer_id, _ = producer = scenario.begin()
    scenario.add(producer, T0)
    scenario.now_ms += 500
    (named,) = scenario.take(scenario.shard.transactions("list", scenario.now))

    def passes(**wanted) -> bool:
        everything = {
            "states": frozenset(),
            "has_states": False,
            "producer_ids": None,
            "min_duration_ms": -1,
        }
        chosen = TransactionFilter(**{**everything, **wanted})
        return chosen.passes(named[1], scenario.now.timestamp_ms)

    assert passes()
    assert passes(states=frozenset({State.ONGOING}), has_states=True)
    assert not passes(has_states=True)
    assert passes(producer_ids=frozenset({producer_id}))
    assert not passes(producer_ids=frozenset({producer_id + 1}))
    assert passes(min_duration_ms=499)
    assert not passes(min_duration_ms=500)


# --- answers that can no longer be given ---


def test_every_answer_has_a_refusal_of_its_own_kind():
    scenario = Scenario()
    shard, now = scenario.shard, scenario.now
    scenario.add(scenario.begin(), T0)
    moved = ErrorCode.NOT_COORDINATOR
    for output in (
        shard.init_producer_id("t", ShardContext(5), _init_request(), now),
        shard.describe_transaction("t", ShardContext(0), ID, now),
    ):
        refused = refuse(output.replies[0], moved)
        assert (refused.token, refused.response.error_code) == ("t", moved)
    listed = refuse(shard.transactions("t", now).replies[0], moved)
    assert listed.response == []


def _init_request() -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id="new", transaction_timeout_ms=1_000)
