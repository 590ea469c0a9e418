"""The table of transaction states, cell by cell, against what each transition does."""

import pytest

from broker.coordinator.transaction.state import EXPIRABLE, IN_LOG, NEXT, PREPARED, STATUS
from broker.coordinator.transaction.state import TransactionState as State
from broker.coordinator.transaction.transaction import Transaction
from tests.lib.transaction_scenario import T0

LEAD_TO = {
    "init": State.EMPTY,
    "rotate": State.EMPTY,
    "add": State.ONGOING,
    "commit": State.PREPARE_COMMIT,
    "abort": State.PREPARE_ABORT,
    "fence": State.PREPARE_ABORT,
}
TRANSITIONS = {
    "init": lambda t: t.increment_epoch(1_000, -1, 5),
    "rotate": lambda t: t.rotate_producer_id(8, 1_000, 5, keeps_last_epoch=False),
    "add": lambda t: t.add_partitions([T0], 0, 5),
    "commit": lambda t: prepare(t, True),
    "abort": lambda t: prepare(t, False),
    "fence": lambda t: t.fence(server_version=2, next_producer_id=-1, timestamp_ms=5),
}


def prepare(transaction: Transaction, is_commit: bool) -> Transaction:
    return transaction.prepare(
        is_commit=is_commit, client_version=2, next_producer_id=-1, timestamp_ms=5
    )


def in_state(state: State) -> Transaction:
    return Transaction(
        producer_id=7, producer_epoch=3, timeout_ms=1_000, state=state, last_update_timestamp_ms=1
    )


@pytest.mark.parametrize("name", TRANSITIONS)
@pytest.mark.parametrize("state", State)
def test_a_transition_is_made_where_the_table_has_it_and_nowhere_else(state, name):
    if LEAD_TO[name] in NEXT[state]:
        assert TRANSITIONS[name](in_state(state)).state is LEAD_TO[name]
    else:
        with pytest.raises(AssertionError):
            TRANSITIONS[name](in_state(state))


@pytest.mark.parametrize("state", State)
def test_only_what_is_prepared_is_completed(state):
    if state not in PREPARED:
        with pytest.raises(AssertionError):
            in_state(state).complete(5)
        return
    wanted = {
        State.PREPARE_COMMIT: State.COMPLETE_COMMIT,
        State.PREPARE_ABORT: State.COMPLETE_ABORT,
    }
    assert in_state(state).complete(5).state is wanted[state]


def test_the_numbers_in_the_log_are_kafkas():
    names = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"]
    assert [IN_LOG[number].value for number in range(6)] == names
    assert (STATUS[State.DEAD], STATUS[State.PREPARE_EPOCH_FENCE]) == (6, 7)


def test_what_may_expire_is_what_holds_no_transaction():
    assert frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}) == EXPIRABLE
    assert all(State.EMPTY in NEXT[state] for state in EXPIRABLE)
