"""When a rule acts on a call that it matches: the first n times, on one call, always, by chance."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

NewRandom = Callable[[int], Callable[[], float]]
"""Returns a source of numbers from 0 to 1 for a seed."""
MAX_NUMBER: Final = 1_000_000_000


class Times(NamedTuple):
    """The first calls, at most so many."""

    most: int


class OnCall(NamedTuple):
    """One call alone; the first that matches is number 1."""

    number: int


class Always(NamedTuple):
    """Every call."""


class WithProbability(NamedTuple):
    """A share of the calls, from 0 to 1; a seed always chooses the same ones."""

    share: float
    seed: int


Trigger = Times | OnCall | Always | WithProbability


def acts(trigger: Trigger, calls: int, hits: int, draw: Callable[[], float]) -> bool:
    """Return whether a rule acts on its next call, after so many calls and hits."""
    match trigger:
        case Times(most):
            return hits < most
        case OnCall(number):
            return calls + 1 == number
        case WithProbability(share, _):
            return draw() < share
        case Always():
            return True


def read_trigger(value: object) -> Trigger:
    """Read a trigger: `{"times": 3}`, `{"on_call": 4}`, `{"always": true}`, or
    `{"probability": 0.1, "seed": 7}`. Raise ValueError.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"when is an object, as {_EXAMPLE}")
    match dict(value):
        case {"times": count, **rest} if not rest:
            return Times(_whole("times", count))
        case {"on_call": number, **rest} if not rest:
            return OnCall(_whole("on_call", number))
        case {"always": True, **rest} if not rest:
            return Always()
        case {"probability": share, "seed": seed, **rest} if not rest:
            if not _is_number(share) or not 0 < share <= 1:
                raise ValueError("probability is a number above 0, and at most 1")
            return WithProbability(float(share), _whole("seed", seed, least=0))
    raise ValueError(f"when is one of {_EXAMPLE}")


def as_json(trigger: Trigger) -> dict[str, Any]:
    """Return what `read_trigger` reads."""
    match trigger:
        case Times(most):
            return {"times": most}
        case OnCall(number):
            return {"on_call": number}
        case WithProbability(share, seed):
            return {"probability": share, "seed": seed}
        case Always():
            return {"always": True}


_EXAMPLE: Final = '{"times": 3}, {"on_call": 4}, {"always": true}, {"probability": 0.1, "seed": 7}'


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(name: str, value: object, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_NUMBER:
        raise ValueError(f"{name} is a whole number from {least} to {MAX_NUMBER}")
    return value
