"""The simulation finds planted bugs: each within a thousand seeds, most within ten."""

import pytest

from tests.sim.replica_cluster import ReplicaSimulation
from tests.sim.replica_mutations import MUTATIONS, truncate_to_the_high_watermark

SEED_LIMIT = 1_000


def first_seed_that_fails(limit: int = SEED_LIMIT) -> int | None:
    for seed in range(limit):
        try:
            ReplicaSimulation(seed).run()
        except Exception:  # noqa: BLE001
            # Whatever it is: a violated invariant, an assertion of the core.
            return seed
    return None


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_found(mutation, monkeypatch):
    mutation(monkeypatch)
    assert first_seed_that_fails() is not None


def test_a_planted_bug_is_found_quickly(monkeypatch):
    truncate_to_the_high_watermark(monkeypatch)
    assert first_seed_that_fails(20) is not None
