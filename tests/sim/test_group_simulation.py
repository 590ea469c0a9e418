"""Seeded histories of a classic group's coordinator, and bugs planted in it that they must find.

A failure names its seed: `MILLSTREAM_SIM_SEEDS=1 MILLSTREAM_SIM_FIRST_SEED=<seed>` replays it
alone.
"""

import os

import pytest

from broker.coordinator.group_state.config import GroupConfig
from tests.lib.seeds import seeds
from tests.sim.group_mutations import MUTATIONS
from tests.sim.group_world import EVENT_COUNT, GROUP_IDS, PROTOCOL_SETS, GroupWorld, play

FIRST_SEED = int(os.environ.get("MILLSTREAM_SIM_FIRST_SEED", "0"))
SEED_COUNT = int(os.environ.get("MILLSTREAM_SIM_SEEDS", "50"))
SEEDS_FOR_A_BUG = 60


@pytest.mark.parametrize("seed", seeds(SEED_COUNT, fast=15, first=FIRST_SEED))
def test_group_histories_keep_the_invariants(seed):
    play(seed)


@pytest.mark.parametrize("seed", seeds(max(SEED_COUNT // 2, 1), fast=8, first=FIRST_SEED))
def test_when_the_faults_end_every_group_settles(seed):
    simulation = GroupWorld(seed)
    for _ in range(EVENT_COUNT // 2):
        simulation.event()
        simulation.check()
    if simulation.config.group_max_size < len(simulation.clients):
        simulation.config = GroupConfig(group_initial_rebalance_delay_ms=0)
        simulation.coordinator_restarts()
    for instance_id in ("s1", "s2"):
        # Two processes with one instance id fence each other for ever, so remove one of them.
        for group_id in GROUP_IDS:
            twins = [
                client
                for client in simulation.clients
                if (client.instance_id, client.group_id) == (instance_id, group_id)
            ]
            for twin in twins[1:]:
                simulation.client_crashes(twin)
    for client in simulation.clients:
        # No client can rejoin within a timeout of 0, so all clients get a longer one here.
        client.protocols, client.rebalance_timeout_ms = PROTOCOL_SETS[0], 60_000
        client.drop_connection(is_noticed=True)
        client.generation_id = -1
    simulation.settle()


def test_a_simulated_history_is_the_same_each_time():
    logs = []
    for _ in range(2):
        simulation = GroupWorld(3)
        for _ in range(EVENT_COUNT):
            simulation.event()
        logs.append(simulation.log)
    assert logs[0] == logs[1]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_planted_bug_is_found(mutation, monkeypatch):
    mutation(monkeypatch)
    for seed in range(SEEDS_FOR_A_BUG):
        try:
            play(seed)
        except Exception:  # noqa: BLE001 - a violation, or an assertion of the core
            return
    pytest.fail("no history shows it")
