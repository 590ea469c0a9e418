"""Seeded requests to a share-state shard, and bugs planted in it that they must find.

A failure names its seed: `MILLSTREAM_SIM_SEEDS=1 MILLSTREAM_SIM_FIRST_SEED=<seed>` replays it
alone.
"""

import os

import pytest

from tests.lib.seeds import seeds
from tests.sim.share_state_mutations import MUTATIONS
from tests.sim.share_state_world import EVENT_COUNT, ShareStateWorld

FIRST_SEED = int(os.environ.get("MILLSTREAM_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLSTREAM_SIM_SEEDS", "30"))
SEED_LIMIT = 40


@pytest.mark.parametrize("seed", seeds(SEED_COUNT, fast=10, first=FIRST_SEED))
def test_the_shard_answers_what_a_model_of_single_offsets_does(seed):
    ShareStateWorld(seed).run(EVENT_COUNT)


@pytest.mark.slow
@pytest.mark.parametrize("plant", MUTATIONS)
def test_a_planted_bug_is_found(plant, monkeypatch):
    plant(monkeypatch)
    for seed in range(SEED_LIMIT):
        try:
            ShareStateWorld(seed).run(EVENT_COUNT)
        except AssertionError:
            return
    pytest.fail(f"{SEED_LIMIT} histories found nothing")
