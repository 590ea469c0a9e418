"""Connect's simulations over more seeds than the tests take.

.venv/bin/python -m tests.connect.simulation --seeds 1000
"""

import argparse
import sys

from tests.connect.group import test_group
from tests.connect.herder import test_cluster_simulation, test_fencing, test_herder
from tests.mirror.offsets import test_mirror_simulation

SIMULATIONS = (
    test_herder.test_nothing_runs_twice_and_everything_comes_to_what_is_wanted,
    test_group.test_nothing_runs_twice_and_in_the_end_everything_runs_in_equal_parts,
    test_group.test_a_rebalance_moves_only_what_it_must,
    test_fencing.test_whoever_is_given_up_and_lives_on_every_number_is_written_once,
    test_cluster_simulation.test_nothing_runs_twice_nothing_is_lost_and_a_lost_worker_moves_only_its_own,
    test_mirror_simulation.test_nobody_who_fails_over_misses_a_record,
    test_mirror_simulation.test_checkpoints_go_back_only_with_the_group,
    test_mirror_simulation.test_nobody_who_goes_back_misses_a_record,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    failed = 0
    for simulate in SIMULATIONS:
        name = simulate.__name__.removeprefix("test_").replace("_", " ")
        for seed in range(asked.first, asked.first + asked.seeds):
            try:
                simulate(seed)
            except AssertionError as error:
                failed += 1
                sys.stdout.write(f"seed {seed}: {name}: {error}\n")
        sys.stdout.write(f"{asked.seeds:,} seeds: {name}\n")
        sys.stdout.flush()
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
