"""Seeded histories of a share group, and bugs planted in it that they must find.

A failure names its seed: `MILLSTREAM_SIM_SEEDS=1 MILLSTREAM_SIM_FIRST_SEED=<seed>` replays it
alone.
"""

import os

import pytest

from tests.lib.seeds import beginning_with, seeds
from tests.sim.replica_cluster import NoProgress
from tests.sim.share_mutations import MUTATIONS
from tests.sim.share_world import STEP_COUNT, ShareWorld

FIRST_SEED = int(os.environ.get("MILLSTREAM_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLSTREAM_SIM_SEEDS", "30"))
SEED_LIMIT = 60
FOUND_BY = {
    "a_failed_write_counts_as_done": 40,
    "records_of_others_may_be_acknowledged": 5,
    "a_late_write_moves_the_stored_start_back": 56,
    "a_lock_that_ends_wakes_nobody": 1,
    "a_share_partition_is_read_before_its_last_write": 131,
}
"""By mutation, a seed that finds it: it is played first, then the others up to the limit."""


@pytest.mark.parametrize("seed", seeds(SEED_COUNT, fast=10, first=FIRST_SEED))
def test_no_record_is_lost_or_with_two_members_and_what_is_accepted_stays_so(seed):
    ShareWorld(seed).run(STEP_COUNT)


@pytest.mark.slow
@pytest.mark.parametrize("plant", MUTATIONS)
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch)
    for seed in beginning_with(FOUND_BY.get(plant.__name__, 0), SEED_LIMIT):
        try:
            ShareWorld(seed).run(STEP_COUNT)
        except (AssertionError, NoProgress):
            return
    pytest.fail("no history shows it")
