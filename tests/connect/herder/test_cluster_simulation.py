"""The whole cluster of workers, simulated; and that the simulation would notice."""

import pytest

from tests.connect.herder.cluster_simulation import simulate
from tests.lib.seeds import seeds


@pytest.mark.parametrize("seed", seeds(5, fast=2))
def test_nothing_runs_twice_nothing_is_lost_and_a_lost_worker_moves_only_its_own(seed: int) -> None:
    simulate(seed)


def test_a_worker_that_joins_before_it_has_stopped_is_found() -> None:
    with pytest.raises(AssertionError, match="runs on"):
        simulate(0, rejoins_early=True)
