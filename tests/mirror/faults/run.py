"""One run: every fault that is asked for, in an order of the seed, and the verdict."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mirror.faults.breaking import FAULTS
from tests.mirror.faults.judge import Verdict, judge
from tests.mirror.faults.world import World


@dataclass(frozen=True)
class Suffered:
    """One fault: how long it took, and how long after it new records were copied again."""

    fault: str
    seconds: float
    went_on_after_seconds: float


@dataclass(frozen=True)
class Outcome:
    suffered: list[Suffered]
    verdicts: list[Verdict]

    @property
    def problems(self) -> list[str]:
        return [problem for verdict in self.verdicts for problem in verdict.problems]


def run(
    folder: Path,
    seed: int,
    seconds: float,
    *,
    is_exactly_once: bool,
    faults: Sequence[str] = tuple(FAULTS),
    tell: Callable[[Suffered], None] = lambda _: None,
) -> Outcome:
    """Freeze and cut for so many seconds each. Raises AssertionError when it does not go on."""
    order = list(faults)
    random.Random(seed).shuffle(order)
    world = World(folder, is_exactly_once=is_exactly_once)
    suffered = []
    with world.running():
        world.wait_until_it_goes_on()
        for fault in order:
            began = time.monotonic()
            FAULTS[fault](world, seconds)
            over = time.monotonic()
            world.wait_until_it_goes_on()
            suffered.append(Suffered(fault, over - began, time.monotonic() - over))
            tell(suffered[-1])
        for load in world.loads.values():
            load.stop()
        for topic, load in world.loads.items():
            ends = {numbers[-1] for numbers in load.written.values()}
            world.wait(lambda: ends <= set(world.copied(topic)))  # noqa: B023
        world.wait(world.translated)
        assert world.mirror.stop() == 0
        return Outcome(suffered, judge(world))
