"""How long nothing was acknowledged: gaps between acknowledgements, key by key."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from tests.chaos.history import Key, Kind, Operation, Outcome


class Window(NamedTuple):
    """A stretch of the run."""

    start_ms: float
    end_ms: float


class Gap(NamedTuple):
    """How long a key was without an acknowledgement, at worst."""

    milliseconds: float
    key: Key


Acknowledgements = dict[Key, list[tuple[float, float]]]
"""When each acknowledged send began and ended, in the order in which they ended."""


def acknowledgements(operations: Iterable[Operation]) -> Acknowledgements:
    """Find the sends that were acknowledged."""
    found: Acknowledgements = defaultdict(list)
    for operation in operations:
        if operation.kind is Kind.SEND and operation.outcome is Outcome.OK:
            for sent in operation.sends:
                found[sent.key].append((operation.start_ms, operation.end_ms))
    for times in found.values():
        times.sort(key=lambda time: time[1])
    return found


def longest_gap(found: Acknowledgements, keys: Sequence[Key], window: Window) -> Gap:
    """Give the longest time within a window in which one of these keys got nothing acknowledged."""
    gaps = [Gap(0.0, "")]
    for key in keys:
        ended = [end for _, end in found.get(key, ()) if window.start_ms <= end <= window.end_ms]
        for before, after in pairwise([window.start_ms, *ended, window.end_ms]):
            gaps.append(Gap(after - before, key))
    return max(gaps)


def count_within(found: Acknowledgements, keys: Sequence[Key], window: Window) -> int:
    """Count what was both begun and acknowledged within a window, on these keys."""
    return sum(
        window.start_ms <= start and end <= window.end_ms
        for key in keys
        for start, end in found.get(key, ())
    )


def without_progress(found: Acknowledgements, keys: Sequence[Key], window: Window) -> list[Key]:
    """Give the keys on which nothing that was begun in a window was acknowledged in it."""
    return [key for key in keys if not count_within(found, [key], window)]
