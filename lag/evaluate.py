"""Burrow's rules (core/internal/evaluator/caching.go): the state of a partition from its commits.

The window has the last commits of a group in a partition, each with the lag at that time. The rules
are tried in this order:

1. The current lag is at most the allowed one: OK.
2. The time since the last commit is longer than from the first to the last one, and no end that was
   seen lately is at or below the last commit: STOP.
3. A commit is smaller than the one before it, and no later one has reached that one again: REWIND.
4. The lag of a commit in the window is at most the allowed one: OK.
5. All commits in the window have the same offset: STALL.
6. The lag never became smaller from one commit to the next: WARN.

Otherwise it is OK. A group has the worst state of its partitions, where STOP, STALL and REWIND
count as ERR, as long as its windows are full enough (`least_complete`).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

INTERVALS = 10
"""Burrow's `intervals`: the commits in a window, and the ends that are kept."""


class State(IntEnum):
    """Burrow's states, the numbers are its own."""

    NOTFOUND = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6


class Commit(NamedTuple):
    """An offset that a group has committed, when, and how far behind it was then."""

    offset: int
    at_ms: int
    lag: int


class Window:
    """Owns the last commits of a group in one partition, and the last ends of that partition.

    A look shows the newest commit only: one of the same offset as the one before is not seen.
    """

    __slots__ = ("_look_count", "commits", "ends")

    def __init__(self) -> None:
        self.commits: deque[Commit] = deque(maxlen=INTERVALS)
        self.ends: deque[int] = deque(maxlen=INTERVALS)
        self._look_count = 0

    def note(self, offset: int, end: int, lag: int, at_ms: int) -> None:
        """Take in what a look has found."""
        self._look_count += 1
        self.ends.append(end)
        if not self.commits or self.commits[-1].offset != offset:
            self.commits.append(Commit(offset, at_ms, lag))

    @property
    def complete(self) -> float:
        """The share of the window that has been watched; a group that stands still fills it too."""
        return min(1.0, self._look_count / INTERVALS)


def state_of(
    commits: Sequence[Commit],
    ends: Sequence[int],
    current_lag: int,
    now_ms: int,
    allowed_lag: int = 0,
) -> State:
    """Return the state of a partition; the commits are in order of time."""
    if not commits:
        return State.NOTFOUND
    if current_lag <= allowed_lag:
        return State.OK
    if _has_stopped(commits, ends, now_ms):
        return State.STOP
    if _is_rewound(commits):
        return State.REWIND
    if any(commit.lag <= allowed_lag for commit in commits):
        return State.OK
    if all(commit.offset == commits[0].offset for commit in commits):
        return State.STALL
    if all(after.lag >= before.lag for before, after in pairwise(commits)):
        return State.WARN
    return State.OK


def _has_stopped(commits: Sequence[Commit], ends: Sequence[int], now_ms: int) -> bool:
    first, last = commits[0], commits[-1]
    if now_ms - last.at_ms <= last.at_ms - first.at_ms:
        return False
    return all(end > last.offset for end in ends)


def _is_rewound(commits: Sequence[Commit]) -> bool:
    for place, (before, after) in enumerate(pairwise(commits)):
        if after.offset < before.offset:
            later = commits[place + 2 :]
            return all(commit.offset < before.offset for commit in later)
    return False


_WORSE = {State.STOP: State.ERR, State.STALL: State.ERR, State.REWIND: State.ERR}


def state_of_group(partitions: Iterable[tuple[State, float]], least_complete: float = 0.0) -> State:
    """Return the state of a group; each partition has its state, and how full its window is."""
    worst = State.NOTFOUND
    for state, complete in partitions:
        counted = _WORSE.get(state, state) if complete >= least_complete else State.OK
        worst = max(worst, counted)
    return worst
