"""Seeded histories of a consumer group, and bugs planted in it that they must find.

A failure names its seed: `MILLSTREAM_SIM_SEEDS=1 MILLSTREAM_SIM_FIRST_SEED=<seed>` replays it
alone.
"""

import os

import pytest

from broker.coordinator.group_state import modern_group
from tests.lib.seeds import beginning_with, seeds
from tests.sim.consumer_group_mutations import MUTATIONS
from tests.sim.consumer_group_world import ConsumerGroupWorld
from tests.sim.migrating_group_world import MigratingGroupWorld

FIRST_SEED = int(os.environ.get("MILLSTREAM_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLSTREAM_SIM_SEEDS", "30"))
EVENT_COUNT = 150
SEED_LIMIT = 60
FOUND_BY = {
    "nobody_has_to_give_up": 17,
    "any_epoch_is_good": 14,
    "what_the_epoch_before_leaves_out_is_given_up": 472,
    "any_commit_is_good": 5,
    "commits_are_good_by_the_member_alone": 11,
    "growing_topics_are_not_noticed": 2,
    "silence_is_not_noticed": 1,
    "what_is_pending_is_not_owned": 17,
    "an_assignment_is_made_once": 8,
}
"""By mutation, a seed that finds it: it is played first, then the others up to the limit."""


@pytest.mark.parametrize("seed", seeds(SEED_COUNT, fast=10, first=FIRST_SEED))
def test_a_partition_is_held_by_one_and_the_group_comes_to_rest(seed):
    ConsumerGroupWorld(seed=seed).run(EVENT_COUNT)


@pytest.mark.parametrize("seed", seeds(SEED_COUNT, fast=10, first=FIRST_SEED))
def test_a_group_changes_its_kind_under_its_members(seed):
    MigratingGroupWorld(seed=seed).run(EVENT_COUNT)


@pytest.mark.parametrize("seed", seeds(max(SEED_COUNT // 2, 1), fast=5, first=FIRST_SEED))
def test_a_group_may_change_while_it_is_being_assigned(seed, monkeypatch):
    monkeypatch.setattr(modern_group, "COST_AT_ONCE", 1)
    MigratingGroupWorld(seed=seed).run(EVENT_COUNT)


@pytest.mark.slow
@pytest.mark.parametrize("plant", MUTATIONS)
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch)
    for seed in beginning_with(FOUND_BY.get(plant.__name__, 0), SEED_LIMIT):
        try:
            ConsumerGroupWorld(seed=seed).run(EVENT_COUNT)
        except (AssertionError, KeyError):
            return
    pytest.fail("no history shows it")
