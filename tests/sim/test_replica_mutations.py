"""The simulation finds planted bugs: each within a thousand seeds, most within ten."""

import pytest

from tests.lib.seeds import beginning_with
from tests.sim.replica_cluster import NoProgress, ReplicaSimulation
from tests.sim.replica_mutations import MUTATIONS, truncate_to_the_high_watermark

SEED_LIMIT = 1_000
FOUND_BY = {
    "truncate_once_to_the_leaders_end": 1,
    "serve_any_epoch": 286,
    "count_a_follower_of_any_epoch": 286,
    "admit_an_earlier_incarnation": 555,
    "resend_unseen": 88,
    "expand_too_early": 197,
    "drop_the_pending_isr_with_old_news": 50,
    "decide_on_any_partition_epoch": 204,
    "let_the_last_replica_stand": 14,
    "forget_the_pending_isr": 4,
    "lead_before_knowing_oneself": 14,
    "take_part_with_every_loss": 8,
    "count_before_comparing": 7,
}
"""By mutation, a seed that finds it: it is played first, then the others up to the limit."""


def first_seed_that_fails(limit: int = SEED_LIMIT, known: int = 0) -> int | None:
    for seed in beginning_with(known, limit):
        try:
            ReplicaSimulation(seed).run()
        except NoProgress:
            continue  # A lack of progress is no loss of records.
        except AssertionError:
            return seed
    return None


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_found(mutation, monkeypatch):
    mutation(monkeypatch)
    known = FOUND_BY.get(mutation.__name__, 0)
    assert first_seed_that_fails(known=known) is not None


def test_a_planted_bug_is_found_quickly(monkeypatch):
    truncate_to_the_high_watermark(monkeypatch)
    assert first_seed_that_fails(20) is not None
