"""When orders are due: fixed before the first is sent, so that a slow answer delays no other.

A load that waits for its answers slows down with what it measures and so hides the wait
("coordinated omission"); this one does not. A profile is the rate over time, in shares of the
highest:

    constant   the rate, all the time
    ramp       from nothing up to the rate
    spike      a fifth of the rate, and all of it in the middle fifth of the time
    wave       up and down between a tenth of the rate and the rate, three times

Within its rate arrivals are evenly spaced; `poisson` is the constant profile with arrivals that
know nothing of each other, as those of many customers.
"""

import math
import random
from collections.abc import Callable, Iterator

STEPS_PER_ORDER = 8
"""How finely the rate is followed."""
_WAVES = 3


def _spike(at: float) -> float:
    return 1.0 if 0.4 <= at < 0.6 else 0.2


def _wave(at: float) -> float:
    return 0.55 - 0.45 * math.cos(2 * math.pi * _WAVES * at)


PROFILES: dict[str, Callable[[float], float]] = {
    "constant": lambda at: 1.0,
    "ramp": lambda at: at,
    "spike": _spike,
    "wave": _wave,
    "poisson": lambda at: 1.0,
}
"""Name -> share of the rate at a share of the time."""


def due_times(profile: str, per_second: float, seconds: float, seed: int) -> list[float]:
    """Return when each order is due, in seconds after the start."""
    if profile == "poisson":
        return list(_poisson(per_second, seconds, random.Random(seed)))
    share_at = PROFILES[profile]
    step = 1 / (per_second * STEPS_PER_ORDER)
    due, gathered = [], 1.0  # The first is due when there is any rate at all.
    for number in range(round(seconds / step)):
        at = number * step
        share = share_at(at / seconds)
        if gathered >= 1.0 and share > 0:
            due.append(at)
            gathered -= 1.0
        gathered += share / STEPS_PER_ORDER
    return due


def _poisson(per_second: float, seconds: float, source: random.Random) -> Iterator[float]:
    at = source.expovariate(per_second)
    while at < seconds:
        yield at
        at += source.expovariate(per_second)
