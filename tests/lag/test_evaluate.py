"""Burrow's rules, one after the other, and the state of a group."""

import pytest

from lag.evaluate import INTERVALS, Commit, State, Window, state_of, state_of_group


def commits(*offsets_and_lags: tuple[int, int]) -> list[Commit]:
    """Make commits, one a second."""
    return [Commit(offset, 1_000 * n, lag) for n, (offset, lag) in enumerate(offsets_and_lags)]


FALLING = commits((10, 30), (20, 20), (30, 10))
GROWING = commits((10, 10), (20, 20), (30, 30))
STANDING = commits((10, 10), (10, 20), (10, 30))
REWOUND = commits((30, 10), (10, 30), (20, 20))


@pytest.mark.parametrize(
    ("state", "window", "lag", "now_ms", "ends"),
    [
        (State.NOTFOUND, [], 5, 0, [40]),
        (State.OK, GROWING, 0, 3_000, [30]),  # Rule 1: it has caught up.
        (State.OK, FALLING, 10, 3_000, [40]),
        (State.STOP, FALLING, 10, 4_001, [40]),  # Rule 2: silent for longer than the window.
        (State.OK, FALLING, 10, 4_000, [40]),
        (State.OK, FALLING, 10, 4_001, [30, 40]),  # A moment ago there was nothing to commit.
        (State.STOP, STANDING, 10, 9_000, [40]),
        (State.REWIND, REWOUND, 20, 3_000, [40]),  # Rule 3.
        (State.OK, commits((30, 10), (10, 30), (30, 10)), 10, 3_000, [40]),  # It is where it was.
        (State.OK, commits((10, 0), (20, 20), (30, 30)), 30, 3_000, [60]),  # Rule 4.
        (State.STALL, STANDING, 30, 3_000, [40]),  # Rule 5.
        (State.WARN, GROWING, 30, 3_000, [60]),  # Rule 6.
        (State.WARN, commits((10, 10), (20, 10)), 10, 1_500, [30]),
    ],
)
def test_the_first_rule_that_holds_gives_the_state(
    state: State, window: list[Commit], lag: int, now_ms: int, ends: list[int]
) -> None:
    assert state_of(window, ends, lag, now_ms) is state


def test_a_lag_that_is_allowed_is_no_lag() -> None:
    assert state_of(GROWING, [60], 30, 3_000, allowed_lag=30) is State.OK
    assert state_of(GROWING, [60], 31, 3_000, allowed_lag=10) is State.OK


@pytest.mark.parametrize(
    ("states", "state"),
    [
        ([], State.NOTFOUND),
        ([State.OK, State.WARN], State.WARN),
        ([State.OK, State.STOP], State.ERR),
        ([State.STALL], State.ERR),
        ([State.WARN, State.REWIND, State.OK], State.ERR),
    ],
)
def test_a_group_has_the_worst_state_of_its_partitions(states: list[State], state: State) -> None:
    assert state_of_group((each, 1.0) for each in states) is state


def test_a_window_that_is_not_full_says_nothing_bad() -> None:
    assert state_of_group([(State.STOP, 0.9)], least_complete=1) is State.OK


def test_a_window_is_full_after_ten_looks_also_if_nothing_is_committed() -> None:
    window = Window()
    for n in range(INTERVALS):
        assert window.complete == n / INTERVALS
        window.note(7, 10 + n, 3 + n, 1_000 * n)
    assert window.complete == 1
    assert list(window.commits) == [Commit(7, 0, 3)]
    assert state_of(list(window.commits), list(window.ends), 12, 9_000) is State.STOP
