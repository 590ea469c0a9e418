"""A replicated partition under faults, checked after every event.

Every other history uses the real log. A failure names its seed:
`MILLSTREAM_SIM_SEEDS=1 MILLSTREAM_SIM_FIRST_SEED=<seed>` replays it alone, and so does
`python -m tests.sim --only replication --first <seed> --seeds 1`.
"""

import os
from functools import cache

import pytest

from tests.sim.replica_cluster import ReplicaSimulation

FIRST_SEED = int(os.environ.get("MILLSTREAM_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLSTREAM_SIM_SEEDS", "75"))
FAST_COUNT = min(8, SEED_COUNT)
LOOKED_INTO = 20


def play(seed: int) -> ReplicaSimulation:
    simulation = ReplicaSimulation(seed, is_on_disk=seed % 2 == 1)
    try:
        simulation.run()
    except BaseException as error:
        error.add_note(f"seed {seed} at {simulation.scheduler.now_ms} ms")
        raise
    return simulation


@cache
def played(seed: int) -> ReplicaSimulation:
    """Play a history once for all tests of its content."""
    return play(seed)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + FAST_COUNT))
def test_replication_keeps_its_invariants(seed):
    played(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST_SEED + FAST_COUNT, FIRST_SEED + SEED_COUNT))
def test_replication_keeps_its_invariants_for_long(seed):
    (played if seed < LOOKED_INTO else play)(seed)


def test_a_seed_replays_to_the_same_history():
    first, second = played(FIRST_SEED), play(FIRST_SEED)

    assert first.scheduler.event_count == second.scheduler.event_count
    assert first.checker.ledger == second.checker.ledger
    assert first.checker.acknowledged == second.checker.acknowledged


@pytest.mark.slow
def test_the_histories_have_something_in_them():
    checkers = [played(seed).checker for seed in range(LOOKED_INTO)]

    assert sum(checker.leader_count for checker in checkers) > 20
    assert sum(checker.expand_count for checker in checkers) > 20
    assert sum(checker.shrink_count for checker in checkers) > 20
    assert sum(len(checker.acknowledged) for checker in checkers) > 200
    assert sum(len(checker.damaged_ever) for checker in checkers) > 3
    assert sum(checker.move_count for checker in checkers) > 10
    assert sum(checker.topic_count for checker in checkers) > 3


def test_only_a_topic_that_allows_it_loses_what_was_committed():
    # It is rare, so the seed that last found it is played first.
    seeds = sorted(range(200), key=lambda seed: seed != 140)
    loser = next((found for found in map(play, seeds) if found.checker.lost_count), None)
    assert loser is not None
    assert loser.allows_unclean
