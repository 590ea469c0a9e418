"""The simulation finds planted bugs: each within a thousand seeds, most within ten."""

import pytest

from tests.lib.seeds import beginning_with
from tests.sim.quorum_cluster import QuorumSimulation
from tests.sim.quorum_mutations import MUTATIONS, vote_for_shorter_logs

SEED_LIMIT = 1_000
FOUND_BY = {
    "commit_old_epochs_by_count": 837,
    "apply_what_was_read_before_it_was_committed": 863,
}
"""By mutation, a seed that finds it: it is played first, then the others up to the limit."""


def first_seed_that_fails(limit: int = SEED_LIMIT, known: int = 0) -> int | None:
    for seed in beginning_with(known, limit):
        try:
            QuorumSimulation(seed).run(is_liveness=seed % 2 == 1)
        except Exception:  # noqa: BLE001
            # A violated invariant, an assertion of the core, or a damaged file.
            return seed
    return None


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_found(mutation, monkeypatch):
    mutation(monkeypatch)
    known = FOUND_BY.get(mutation.__name__, 0)
    assert first_seed_that_fails(known=known) is not None


def test_a_planted_bug_is_found_quickly(monkeypatch):
    vote_for_shorter_logs(monkeypatch)
    assert first_seed_that_fails(20) is not None
