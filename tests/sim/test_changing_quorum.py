"""A quorum whose voters come and go under faults; planted bugs in it are found.

A failure names its seed: `MILLSTREAM_SIM_SEEDS=1 MILLSTREAM_SIM_FIRST_SEED=<seed>` replays it
alone.
"""

import os

import pytest

from tests.lib.seeds import beginning_with
from tests.sim.changing_quorum import ChangingQuorum
from tests.sim.voter_mutations import (
    MUTATIONS,
    change_several_voters_at_once,
    lead_on_after_the_removal,
)

FIRST_SEED = int(os.environ.get("MILLSTREAM_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLSTREAM_SIM_SEEDS", "24"))
FAST_COUNT = min(4, SEED_COUNT)
SEED_LIMIT = 400
FOUND_BY = {change_several_voters_at_once: 45}
"""A seed that finds a bug, where the first ones do not."""


def play(seed: int) -> ChangingQuorum:
    """Play a history: of safety for an even seed, of liveness for an odd one."""
    simulation = ChangingQuorum(seed)
    try:
        simulation.run(is_liveness=seed % 2 == 1)
    except BaseException as error:
        error.add_note(f"seed {seed} at {simulation.scheduler.now_ms} ms")
        raise
    return simulation


def first_seed_that_fails(limit: int, known: int = 0) -> int | None:
    for seed in beginning_with(known, limit):
        try:
            play(seed)
        except Exception:  # noqa: BLE001 - a violation, or an assertion of the core
            return seed
    return None


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + FAST_COUNT))
def test_voters_that_come_and_go_lose_nothing(seed):
    play(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST_SEED + FAST_COUNT, FIRST_SEED + SEED_COUNT))
def test_voters_that_come_and_go_lose_nothing_for_long(seed):
    play(seed)


@pytest.mark.slow
def test_the_histories_have_changes_moves_and_lost_disks_in_them():
    simulations = [play(seed) for seed in range(12)]

    assert sum(simulation.checker.change_count for simulation in simulations) > 20
    assert sum(len(simulation.checker.lost) for simulation in simulations) > 3
    assert sum(simulation.move_count for simulation in simulations) > 10


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_found(mutation, monkeypatch):
    mutation(monkeypatch)
    assert first_seed_that_fails(SEED_LIMIT, FOUND_BY.get(mutation, 0)) is not None


def test_a_planted_bug_is_found_quickly(monkeypatch):
    lead_on_after_the_removal(monkeypatch)
    assert first_seed_that_fails(20) is not None
