"""Unavailability: the time between the acknowledgements of each key."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.history import Key, Kind, Operation, Outcome


class Window(NamedTuple):
    """A time window of the run, in ms since its start."""

    start_ms: float
    end_ms: float


class Gap(NamedTuple):
    """The longest time without an acknowledgement, and its key."""

    milliseconds: float
    key: Key


Acknowledgements = dict[Key, list[tuple[float, float]]]
"""By key, the start and end of each acknowledged send in ms, in the order of the ends."""


def acknowledgements(operations: Iterable[Operation]) -> Acknowledgements:
    """Return the acknowledged sends of all keys."""
    found: Acknowledgements = defaultdict(list)
    for operation in operations:
        if operation.kind is Kind.SEND and operation.outcome is Outcome.OK:
            for sent in operation.sends:
                found[sent.key].append((operation.start_ms, operation.end_ms))
    for times in found.values():
        times.sort(key=lambda time: time[1])
    return found


def longest_gap(found: Acknowledgements, keys: Sequence[Key], window: Window) -> Gap:
    """Return the longest time within a window in which one key got no acknowledgement."""
    gaps = [Gap(0.0, "")]
    for key in keys:
        ended = [end for _, end in found.get(key, ()) if window.start_ms <= end <= window.end_ms]
        for before, after in pairwise([window.start_ms, *ended, window.end_ms]):
            gaps.append(Gap(after - before, key))
    return max(gaps)


def count_within(found: Acknowledgements, keys: Sequence[Key], window: Window) -> int:
    """Count the sends of these keys that started and were acknowledged within a window."""
    return sum(
        window.start_ms <= start and end <= window.end_ms
        for key in keys
        for start, end in found.get(key, ())
    )


def without_progress(found: Acknowledgements, keys: Sequence[Key], window: Window) -> list[Key]:
    """Return the keys without a send that started and was acknowledged within a window."""
    return [key for key in keys if not count_within(found, [key], window)]
