"""`python -m tests.sim --seeds N`: many histories of every simulation, in several processes.

Every simulation plays every seed, except those of the quorum, which play one for every four. The
command prints its progress, each seed that fails with the violation, and at the end a line for each
simulation: the number of histories, the number of events, and the time. With `--planted` it plants
known bugs instead, and prints the first seed that finds each bug, with the violation.
"""

import argparse
import logging
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import NamedTuple

import pytest

from broker.coordinator.group_state import modern_group
from tests.sim import (
    consumer_group_mutations,
    group_mutations,
    quorum_mutations,
    replica_mutations,
    share_group_mutations,
    share_mutations,
    share_state_mutations,
    streams_group_mutations,
    transaction_data_mutations,
    transaction_mutations,
    voter_mutations,
)
from tests.sim.changing_quorum import ChangingQuorum
from tests.sim.consumer_group_world import ConsumerGroupWorld
from tests.sim.group_world import play as play_groups
from tests.sim.migrating_group_world import MigratingGroupWorld
from tests.sim.quorum_cluster import QuorumSimulation
from tests.sim.replica_cluster import NoProgress, ReplicaSimulation
from tests.sim.share_group_world import ShareGroupWorld
from tests.sim.share_state_world import EVENT_COUNT as STATE_EVENT_COUNT
from tests.sim.share_state_world import ShareStateWorld
from tests.sim.share_world import STEP_COUNT as SHARE_STEP_COUNT
from tests.sim.share_world import ShareWorld
from tests.sim.streams_group_world import StreamsGroupWorld
from tests.sim.test_consumer_group_simulation import EVENT_COUNT
from tests.sim.transaction_cluster import TransactionSimulation
from tests.sim.transaction_data import STEP_COUNT, TransactionData

CHUNK = 25
PROGRESS_SECONDS = 10.0
PLANTED_LIMIT = 1_000
SHOWN_CHARACTERS = 300
"""The length of a printed violation, which may contain whole states."""


def play_replication(seed: int) -> int:
    """Play on the real log over a lossy disk for odd seeds, on a log in memory for even ones."""
    simulation = ReplicaSimulation(seed, is_on_disk=seed % 2 == 1)
    simulation.run()
    return simulation.scheduler.event_count


def play_quorum(seed: int) -> int:
    """Play a safety history for even seeds, a liveness history for odd ones."""
    simulation = QuorumSimulation(seed)
    simulation.run(is_liveness=seed % 2 == 1)
    return simulation.scheduler.event_count


def play_changing_quorum(seed: int) -> int:
    """Play a quorum whose voters come and go, in the modes of `play_quorum`."""
    simulation = ChangingQuorum(seed)
    simulation.run(is_liveness=seed % 2 == 1)
    return simulation.scheduler.event_count


def play_consumer_groups(seed: int) -> int:
    """Play a group with members of both protocols for every other seed."""
    world = (MigratingGroupWorld if seed % 2 else ConsumerGroupWorld)(seed=seed)
    world.run(EVENT_COUNT)
    return EVENT_COUNT


def play_streams_groups(seed: int) -> int:
    """Play a group of Kafka Streams applications."""
    StreamsGroupWorld(seed=seed).run(EVENT_COUNT)
    return EVENT_COUNT


def play_transactions(seed: int) -> int:
    """Play coordinators of transactions and of groups, over modelled partitions."""
    simulation = TransactionSimulation(seed)
    simulation.run()
    return simulation.scheduler.event_count


def play_transaction_data(seed: int) -> int:
    """Play the partitions of transactions, with real logs."""
    TransactionData(seed).run()
    return STEP_COUNT


def play_shares(seed: int) -> int:
    """Play the leaders of share-partitions, and share coordinators."""
    world = ShareWorld(seed)
    world.run(SHARE_STEP_COUNT)
    return world.scheduler.event_count


def play_share_groups(seed: int) -> int:
    """Play the members and the coordinator of a share group; every other one in small steps."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        if seed % 2:
            monkeypatch.setattr(modern_group, "COST_AT_ONCE", 1)
        ShareGroupWorld(seed=seed).run(EVENT_COUNT)
    return EVENT_COUNT


def play_share_states(seed: int) -> int:
    """Play one share coordinator's shard, held against a model."""
    ShareStateWorld(seed).run(STATE_EVENT_COUNT)
    return STATE_EVENT_COUNT


SIMULATIONS: dict[str, Callable[[int], int]] = {
    "replication": play_replication,
    "quorum": play_quorum,
    "changing-quorum": play_changing_quorum,
    "groups": play_groups,
    "consumer-groups": play_consumer_groups,
    "streams-groups": play_streams_groups,
    "transactions": play_transactions,
    "transaction-data": play_transaction_data,
    "shares": play_shares,
    "share-groups": play_share_groups,
    "share-states": play_share_states,
}
PLANTED: list[tuple[Callable[[int], int], Callable[[pytest.MonkeyPatch], None]]] = [
    *((play_replication, each) for each in replica_mutations.MUTATIONS),
    *((play_quorum, each) for each in quorum_mutations.MUTATIONS),
    *((play_changing_quorum, each) for each in voter_mutations.MUTATIONS),
    *((play_groups, each) for each in group_mutations.MUTATIONS),
    *((play_consumer_groups, each) for each in consumer_group_mutations.MUTATIONS),
    *((play_streams_groups, each) for each in streams_group_mutations.MUTATIONS),
    *((play_transactions, each) for each in transaction_mutations.MUTATIONS),
    *((play_transaction_data, each) for each in transaction_data_mutations.MUTATIONS),
    *((play_shares, each) for each in share_mutations.MUTATIONS),
    *((play_share_groups, each) for each in share_group_mutations.MUTATIONS),
    *((play_share_states, each) for each in share_state_mutations.MUTATIONS),
]
# A history of the quorum takes about as long as three of the others.
SEEDS_FOR_ONE = {"quorum": 4, "changing-quorum": 4}


class Played(NamedTuple):
    """The result of some histories of one simulation."""

    events: int
    cpu_seconds: float
    failures: list[str]


def play(name: str, seeds: range) -> Played:
    """Play some histories; a failure ends only its own history."""
    # Logs write a warning for every incomplete end that they truncate.
    logging.disable(logging.CRITICAL)
    events, failures, began = 0, [], time.process_time()
    for seed in seeds:
        try:
            events += SIMULATIONS[name](seed)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
            failures.append(
                f"{name}, seed {seed}: {type(error).__name__}: {str(error)[:SHOWN_CHARACTERS]}"
            )
    return Played(events, time.process_time() - began, failures)


def play_all(names: list[str], first: int, seed_count: int, processes: int) -> int:
    """Play every simulation with every seed; return the number of failed histories."""
    failure_count = 0
    with ProcessPoolExecutor(processes) as pool:
        for name in names:
            wanted = max(seed_count // SEEDS_FOR_ONE.get(name, 1), 1)
            end = first + wanted
            chunks = [range(at, min(at + CHUNK, end)) for at in range(first, end, CHUNK)]
            began = told = time.monotonic()
            done = events = failed = 0
            cpu_seconds = 0.0
            running = {pool.submit(play, name, seeds): seeds for seeds in chunks}
            for future in as_completed(running):
                played = future.result()
                done += len(running[future])
                events += played.events
                cpu_seconds += played.cpu_seconds
                failed += len(played.failures)
                for failure in played.failures:
                    _say(failure)
                if time.monotonic() - told > PROGRESS_SECONDS:
                    told = time.monotonic()
                    _say(f"{name}: {done} of {wanted}, {failed} failed, {told - began:.0f} s")
            _say(
                f"{name}: {done} histories, {events} events, {failed} failed, "
                f"{time.monotonic() - began:.0f} s, {cpu_seconds:.0f} s of CPU"
            )
            failure_count += failed
    return failure_count


def first_finding(
    play_seed: Callable[[int], int], mutation: Callable[[pytest.MonkeyPatch], None]
) -> str | None:
    """Return the seed that finds a planted bug, with the violation; a lack of progress alone does
    not count."""
    stuck = ""
    with pytest.MonkeyPatch.context() as monkeypatch:
        mutation(monkeypatch)
        for seed in range(PLANTED_LIMIT):
            try:
                play_seed(seed)
            except NoProgress:
                stuck = stuck or f" (stands still at seed {seed})"
            except Exception as error:  # noqa: BLE001 - a violation, or an assertion of the core
                return (
                    f"seed {seed}{stuck}: {str(error)[:SHOWN_CHARACTERS] or type(error).__name__}"
                )
    return None


def planted(index: int) -> str | None:
    """Find one planted bug, in a process of the pool."""
    logging.disable(logging.CRITICAL)
    return first_finding(*PLANTED[index])


def find_planted(processes: int) -> int:
    """Print the seed that finds each planted bug; return the number of bugs that were not found."""
    missing = 0
    with ProcessPoolExecutor(processes) as pool:
        for (_, mutation), found in zip(
            PLANTED, pool.map(planted, range(len(PLANTED))), strict=True
        ):
            missing += found is None
            _say(f"{mutation.__name__}: {found or f'not found in {PLANTED_LIMIT} seeds'}")
    return missing


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Run the command; see the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=list(SIMULATIONS))
    parser.add_argument("--planted", action="store_true", help="find planted bugs instead")
    parsed = parser.parse_args(arguments)
    if parsed.planted:
        return 1 if find_planted(parsed.processes) else 0
    names = [parsed.only] if parsed.only else list(SIMULATIONS)
    return 1 if play_all(names, parsed.first, parsed.seeds, parsed.processes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
