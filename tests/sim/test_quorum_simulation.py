"""The metadata quorum under faults, checked after every event.

A failure names its seed: `MILLSTREAM_SIM_SEEDS=1 MILLSTREAM_SIM_FIRST_SEED=<seed>` replays it
alone.
"""

import os
from functools import cache

import pytest

from tests.sim.quorum_cluster import QuorumSimulation

FIRST_SEED = int(os.environ.get("MILLSTREAM_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLSTREAM_SIM_SEEDS", "36"))
"""The first nine seeds find all planted bugs but one, which seed 837 finds."""
FAST_COUNT = min(4, SEED_COUNT)


def play(seed: int) -> QuorumSimulation:
    """Play a history: of safety for an even seed, of liveness for an odd one."""
    simulation = QuorumSimulation(seed)
    try:
        simulation.run(is_liveness=seed % 2 == 1)
    except BaseException as error:
        error.add_note(f"seed {seed} at {simulation.scheduler.now_ms} ms")
        raise
    return simulation


@cache
def played(seed: int) -> QuorumSimulation:
    """Play a history once for all tests of its content."""
    return play(seed)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + FAST_COUNT))
def test_quorum_keeps_its_invariants(seed):
    played(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST_SEED + FAST_COUNT, FIRST_SEED + SEED_COUNT))
def test_quorum_keeps_its_invariants_for_long(seed):
    play(seed)


def test_a_seed_replays_to_the_same_history():
    first, second = played(FIRST_SEED), play(FIRST_SEED)

    assert first.scheduler.event_count == second.scheduler.event_count
    assert first.checker.ledger.batches == second.checker.ledger.batches
    assert first.checker.acknowledged == second.checker.acknowledged


@pytest.mark.slow
def test_the_histories_have_something_in_them():
    simulations = [played(seed) for seed in range(4)]

    assert sum(simulation.checker.election_count for simulation in simulations) > 4
    assert sum(len(simulation.checker.acknowledged) for simulation in simulations) > 100
