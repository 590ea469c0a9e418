"""Histories of transactions on real logs, and bugs planted in them.

A failure names its seed; `MILLSTREAM_SIM_SEEDS=1 MILLSTREAM_SIM_FIRST_SEED=<seed>` replays it
alone.
"""

import os
from functools import cache

import pytest

from tests.lib.seeds import beginning_with
from tests.sim.transaction_data import TransactionData
from tests.sim.transaction_data_mutations import MUTATIONS, note_no_aborted_transaction
from tests.sim.transaction_people import ABORT

FIRST_SEED = int(os.environ.get("MILLSTREAM_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLSTREAM_SIM_SEEDS", "100"))
FAST_COUNT = min(8, SEED_COUNT)
SEED_LIMIT = 1_000
FOUND_BY = {
    "keep_the_guard_after_a_marker": 46,
    "take_late_markers": 9,
    "commit_by_the_order_of_markers": 23,
}
"""By mutation, a seed that finds it: it is played first, then the others up to the limit."""


def play(seed: int) -> TransactionData:
    history = TransactionData(seed)
    try:
        history.run()
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
    return history


@cache
def played(seed: int) -> TransactionData:
    """Play a history once for all tests of its content."""
    return play(seed)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + FAST_COUNT))
def test_a_transaction_is_all_or_nothing_to_its_readers(seed):
    played(seed)


@pytest.mark.slow
def test_a_transaction_is_all_or_nothing_to_its_readers_for_long():
    for seed in range(FIRST_SEED + FAST_COUNT, FIRST_SEED + SEED_COUNT):
        play(seed)


@pytest.mark.slow
def test_the_histories_have_something_in_them():
    histories = [played(seed) for seed in range(10)]
    assert sum(history.commit_count for history in histories) > 30
    assert sum(each.state == ABORT for history in histories for each in history.transactions) > 30
    assert sum(len(history.owners) for history in histories) > 50
    assert any(history.group.stable_offset() >= 0 for history in histories)


def first_seed_that_fails(limit: int = SEED_LIMIT, known: int = 0) -> int | None:
    for seed in beginning_with(known, limit):
        try:
            TransactionData(seed).run()
        except Exception:  # noqa: BLE001
            # A wrong record was read, or an assertion of the core failed.
            return seed
    return None


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_found(mutation, monkeypatch):
    mutation(monkeypatch)
    known = FOUND_BY.get(mutation.__name__, 0)
    assert first_seed_that_fails(known=known) is not None


def test_a_planted_bug_is_found_quickly(monkeypatch):
    note_no_aborted_transaction(monkeypatch)
    assert first_seed_that_fails(20) is not None
