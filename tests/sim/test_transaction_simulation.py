"""Seeded histories of transactions. A failure names its seed:

`MILLRACE_SIM_SEEDS=1 MILLRACE_SIM_FIRST_SEED=<seed>` replays it alone.
"""

import os

import pytest

from tests.sim.transaction_cluster import TransactionSimulation
from tests.sim.transaction_mutations import MUTATIONS

FIRST_SEED = int(os.environ.get("MILLRACE_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLRACE_SIM_SEEDS", "8"))
SEED_LIMIT = 200
THINGS_THAT_HAPPEN = {"appended", "committed", "aborted", "told", "elected", "copied"}


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEED_COUNT))
def test_a_transaction_is_all_or_nothing(seed):
    counts = TransactionSimulation(seed).run().counts
    assert counts.keys() >= THINGS_THAT_HAPPEN, f"seed {seed} tests little: {counts}"


def test_a_seed_repeats_its_history():
    first, second = TransactionSimulation(3), TransactionSimulation(3)
    assert first.run() == second.run()
    assert first.newest.log == second.newest.log


def first_seed_that_fails(limit: int = SEED_LIMIT) -> int | None:
    for seed in range(limit):
        try:
            TransactionSimulation(seed).run()
        except Exception:  # noqa: BLE001
            # Whatever it is: a violated invariant, an assertion of the core.
            return seed
    return None


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_found(mutation, monkeypatch):
    mutation(monkeypatch)
    assert first_seed_that_fails() is not None
