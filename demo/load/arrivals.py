"""The due times of orders, computed before the first is sent, so no slow answer delays others.

A load that waits for answers becomes slower together with the measured system, and so hides the
waiting time ("coordinated omission"). This load does not wait. A profile is the rate over time, as
a share of the highest rate:

    constant   the full rate all the time
    ramp       from zero to the full rate
    spike      a fifth of the rate, and the full rate in the middle fifth of the time
    wave       three waves between a tenth of the rate and the full rate

Arrivals are evenly spaced. Only `poisson`, with a constant rate, has independent arrivals, like
those of many customers.
"""

import math
import random
from collections.abc import Callable, Iterator

STEPS_PER_ORDER = 8
"""The number of intervals in which the rate is approximated."""
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
"""Name -> function from a share of the time to a share of the rate."""


def due_times(profile: str, per_second: float, seconds: float, seed: int) -> list[float]:
    """Return the due time of each order, in seconds after the start."""
    if profile == "poisson":
        return list(_poisson(per_second, seconds, random.Random(seed)))
    share_at = PROFILES[profile]
    step = 1 / (per_second * STEPS_PER_ORDER)
    due, gathered = [], 1.0  # The first order is due as soon as the rate is above zero.
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
