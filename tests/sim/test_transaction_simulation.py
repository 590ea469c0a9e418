"""Seeded histories of transactions, and bugs planted in the coordinator that they must find.

A failure names its seed: `MILLSTREAM_SIM_SEEDS=1 MILLSTREAM_SIM_FIRST_SEED=<seed>` replays it
alone.
"""

import os

import pytest

from tests.lib.seeds import beginning_with
from tests.sim.transaction_cluster import TransactionSimulation
from tests.sim.transaction_mutations import MUTATIONS

FIRST_SEED = int(os.environ.get("MILLSTREAM_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLSTREAM_SIM_SEEDS", "8"))
SEED_LIMIT = 200
FOUND_BY = {
    "fence_without_raising_the_epoch": 7,
    "end_for_an_epoch_that_is_over": 16,
    "begin_effects_before_they_are_committed": 189,
}
"""By mutation, a seed that finds it: it is played first, then the others up to the limit."""
THINGS_THAT_HAPPEN = {"appended", "committed", "aborted", "told", "elected", "copied"}


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEED_COUNT))
def test_a_transaction_is_all_or_nothing(seed):
    counts = TransactionSimulation(seed).run().counts
    assert counts.keys() >= THINGS_THAT_HAPPEN, f"seed {seed} tests little: {counts}"


def test_a_seed_repeats_its_history():
    first, second = TransactionSimulation(3), TransactionSimulation(3)
    assert first.run() == second.run()
    assert first.newest.log == second.newest.log


def first_seed_that_fails(limit: int = SEED_LIMIT, known: int = 0) -> int | None:
    for seed in beginning_with(known, limit):
        try:
            TransactionSimulation(seed).run()
        except Exception:  # noqa: BLE001
            # A violated invariant, or an assertion of the core.
            return seed
    return None


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_found(mutation, monkeypatch):
    mutation(monkeypatch)
    known = FOUND_BY.get(mutation.__name__, 0)
    assert first_seed_that_fails(known=known) is not None
