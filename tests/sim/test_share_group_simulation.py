"""Seeded histories of a share group's members, and bugs planted in it that they must find."""

import os

import pytest

from broker.coordinator.group_state import modern_group
from tests.lib.seeds import beginning_with, seeds
from tests.sim.share_group_mutations import MUTATIONS
from tests.sim.share_group_world import ShareGroupWorld

FIRST_SEED = int(os.environ.get("MILLSTREAM_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLSTREAM_SIM_SEEDS", "30"))
EVENT_COUNT = 150
SEED_LIMIT = 60
FOUND_BY: dict[str, int] = {}
"""By mutation, a seed that finds it: it is played first, then the others up to the limit."""


@pytest.mark.parametrize("seed", seeds(SEED_COUNT, fast=10, first=FIRST_SEED))
def test_only_partitions_with_state_are_shared_and_the_group_comes_to_rest(seed):
    ShareGroupWorld(seed=seed).run(EVENT_COUNT)


@pytest.mark.parametrize("seed", seeds(max(SEED_COUNT // 2, 1), fast=5, first=FIRST_SEED))
def test_a_group_may_change_while_it_is_being_assigned(seed, monkeypatch):
    monkeypatch.setattr(modern_group, "COST_AT_ONCE", 1)
    ShareGroupWorld(seed=seed).run(EVENT_COUNT)


@pytest.mark.slow
@pytest.mark.parametrize("plant", MUTATIONS)
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch)
    for seed in beginning_with(FOUND_BY.get(plant.__name__, 0), SEED_LIMIT):
        try:
            ShareGroupWorld(seed=seed).run(EVENT_COUNT)
        except (AssertionError, KeyError):
            return
    pytest.fail(f"{SEED_LIMIT} histories found nothing")
