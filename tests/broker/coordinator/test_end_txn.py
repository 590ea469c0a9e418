"""EndTxn: the table in its module cell by cell, both versions of the protocol.

The cells are those of Apache Kafka 4.3.1, measured on two of its brokers, the one that writes the
markers stopped meanwhile.
"""

import pytest

from broker.coordinator.transaction.state import TransactionState as State
from common.kafka.errors import ErrorCode
from tests.lib.transaction_scenario import ID, T0, T1, V1, V2, Scenario

NONE, FENCED = ErrorCode.NONE, ErrorCode.PRODUCER_FENCED
INVALID, CONCURRENT = ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS

V2_TABLE = [
    # state, commit again, abort again, commit, abort, any other epoch
    (State.EMPTY, FENCED, FENCED, INVALID, NONE, FENCED),
    (State.ONGOING, FENCED, FENCED, NONE, NONE, FENCED),
    (State.PREPARE_COMMIT, CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT),
    (State.PREPARE_ABORT, CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT),
    (State.COMPLETE_COMMIT, NONE, INVALID, INVALID, NONE, FENCED),
    (State.COMPLETE_ABORT, INVALID, NONE, INVALID, NONE, FENCED),
]
V1_TABLE = [
    # state, commit, abort
    (State.EMPTY, INVALID, INVALID),
    (State.ONGOING, NONE, NONE),
    (State.PREPARE_COMMIT, CONCURRENT, CONCURRENT),
    (State.PREPARE_ABORT, CONCURRENT, CONCURRENT),
    (State.COMPLETE_COMMIT, NONE, INVALID),
    (State.COMPLETE_ABORT, INVALID, NONE),
]


def in_state(state: State) -> tuple[Scenario, int]:
    scenario = Scenario()
    producer_id, epoch = scenario.begin()
    scenario.force(state=state, producer_epoch=epoch + 5)
    if state is State.ONGOING:
        scenario.shard.state.ongoing[ID] = None
    return scenario, producer_id


@pytest.mark.parametrize("column", range(4))
@pytest.mark.parametrize("row", V2_TABLE, ids=lambda row: row[0].value)
def test_every_cell_of_the_table_of_version_2(row, column):
    scenario, producer_id = in_state(row[0])
    producer = producer_id, 4 if column < 2 else 5
    assert scenario.end(producer, commit=column in {0, 2}, version=V2) == row[1 + column]


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("epoch", [-1, 3, 6])
@pytest.mark.parametrize("row", V2_TABLE, ids=lambda row: row[0].value)
def test_any_other_epoch_in_version_2(row, epoch, commit):
    scenario, producer_id = in_state(row[0])
    assert scenario.end((producer_id, epoch), commit=commit, version=V2) == row[5]


@pytest.mark.parametrize("state", [State.PREPARE_COMMIT, State.PREPARE_ABORT])
def test_while_markers_are_written_even_a_stranger_is_told_to_wait(state):
    scenario, producer_id = in_state(state)
    stranger = producer_id + 7000, 5
    assert scenario.end(stranger, version=V2) == CONCURRENT
    assert scenario.end(stranger, version=V1) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_producer_that_ends_its_next_transaction_at_once_is_not_fenced():
    scenario = Scenario()
    first = scenario.begin()
    scenario.add(first, T0, T1)
    second = scenario.ended(first)
    assert scenario.end(second, commit=False) == CONCURRENT
    scenario.write_markers()
    assert scenario.ended(second, commit=False) == (second[0], second[1] + 1)


@pytest.mark.parametrize("column", range(2))
@pytest.mark.parametrize("row", V1_TABLE, ids=lambda row: row[0].value)
def test_every_cell_of_the_table_of_version_1(row, column):
    scenario, producer_id = in_state(row[0])
    assert scenario.end((producer_id, 5), commit=column == 0, version=V1) == row[1 + column]
    assert scenario.end((producer_id, 4), commit=column == 0, version=V1) == FENCED


@pytest.mark.parametrize("commit", [True, False])
def test_ending_raises_the_epoch_and_a_repeat_hears_the_same(commit):
    scenario = Scenario()
    producer_id, epoch = scenario.begin()
    scenario.add((producer_id, epoch), T0, T1)
    assert scenario.ended((producer_id, epoch), commit=commit) == (producer_id, epoch + 1)
    (markers,) = scenario.markers
    assert markers.partitions == (T0, T1)
    assert (markers.producer_epoch, markers.is_commit) == (epoch + 1, commit)
    scenario.write_markers()
    assert scenario.ended((producer_id, epoch), commit=commit) == (producer_id, epoch + 1)
    assert scenario.markers == []


def test_a_transaction_of_version_1_keeps_its_epoch():
    scenario = Scenario()
    producer = scenario.begin()
    scenario.add(producer, T0)
    assert scenario.end(producer, version=V1) == NONE
    assert scenario.markers[0].producer_epoch == producer[1]
    assert scenario.markers[0].transaction_version == 0


def test_an_end_that_was_delayed_does_not_end_the_next_transaction():
    scenario = Scenario()
    first = scenario.begin()
    scenario.add(first, T0)
    second = scenario.ended(first)
    scenario.write_markers()
    assert scenario.add(second, T1, version=5) == {NONE}
    assert scenario.end(first, commit=False) == FENCED
    assert scenario.end(first, commit=True) == FENCED
    assert scenario.transaction().state is State.ONGOING


def test_the_last_epoch_of_an_id_gives_way_to_a_new_id():
    scenario = Scenario()
    old_id, _ = scenario.begin()
    scenario.force(producer_epoch=32766)
    scenario.add((old_id, 32766), T0)
    new = scenario.ended((old_id, 32766))
    assert new == (old_id + 1, 0)
    assert (scenario.markers[0].producer_id, scenario.markers[0].producer_epoch) == (old_id, 32767)
    assert scenario.end((old_id, 32766)) == CONCURRENT
    # The producer has its new id before the markers of the old one are written.
    assert scenario.add(new, T0, version=5) == {CONCURRENT}
    assert scenario.end(new, commit=False) == CONCURRENT
    scenario.reload()
    scenario.write_markers()
    assert scenario.ended((old_id, 32766)) == new
    assert scenario.add(new, T0, version=5) == {NONE}


def test_an_abort_where_there_is_no_transaction_needs_no_marker():
    scenario = Scenario()
    producer_id, epoch = scenario.begin()
    assert scenario.ended((producer_id, epoch), commit=False) == (producer_id, epoch + 1)
    assert scenario.markers == []
    assert scenario.transaction().state is State.COMPLETE_ABORT
    assert scenario.ended((producer_id, epoch), commit=False) == (producer_id, epoch + 1)


def test_without_a_producer_id_at_hand_the_last_epoch_waits():
    scenario = Scenario()
    producer_id, _ = scenario.begin()
    scenario.force(producer_epoch=32766)
    scenario.add((producer_id, 32766), T0)
    scenario.producer_ids = iter(())
    assert scenario.end((producer_id, 32766)) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert scenario.transaction().state is State.ONGOING


@pytest.mark.parametrize("version", [0, 1, 4, 5])
def test_who_is_not_known_ends_nothing(version):
    scenario = Scenario()
    producer_id, epoch = scenario.begin()
    scenario.add((producer_id, epoch), T0)
    unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert scenario.end((producer_id + 1, epoch), version=version) == unknown
    assert scenario.end((producer_id, epoch), name="other", version=version) == unknown
    assert scenario.end((producer_id, epoch), name="", version=version) == ErrorCode.INVALID_REQUEST
    fenced = FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert scenario.end((producer_id, epoch - 1), version=version) == fenced
    assert scenario.end((producer_id, -1), version=version) == fenced
    assert scenario.transaction().state is State.ONGOING
