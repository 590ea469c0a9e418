"""Windows, sessions and joins in event time, against oracles that see all events at once."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams import joins, sessions, windows

TIMES = st.lists(st.integers(-100_000, 100_000), max_size=40)
SIZES = st.tuples(st.integers(1, 30), st.integers(1, 30)).map(lambda pair: sorted(pair))


def counting(value: int | None) -> int:
    return (value or 0) + 1


def run_windows(windowing: windows.Windowing, times: list[int]) -> tuple[dict[int, int], int]:
    """Return all windows, closed and open, and how many events were late."""
    state: windows.State | None = None
    found: dict[int, int] = {}
    for event_ms in times:
        added = windows.add(windowing, state, event_ms, counting)
        state = added.state
        for start, value in added.closed:
            assert start not in found, "a window closes once"
            found[start] = value
    if state is None:
        return {}, 0
    found.update({int(start): value for start, value in state["open"].items()})
    return found, state["late"]


def every_window(size_s: int, advance_s: int, times: list[int]) -> dict[int, int]:
    """Try every start there can be."""
    found: dict[int, int] = {}
    advance_ms = advance_s * 1000
    for start in range(-200_000 // advance_ms * advance_ms, 200_000, advance_ms):
        number = sum(start <= event_ms < start + size_s * 1000 for event_ms in times)
        if number:
            found[start] = number
    return found


@given(SIZES, TIMES)
def test_windows_equal_the_oracle_in_any_order_within_the_grace_period(
    sizes: list[int], times: list[int]
) -> None:
    advance_s, size_s = sizes
    windowing = windows.hopping(size_s, advance_s, grace_s=200)
    assert run_windows(windowing, times) == (every_window(size_s, advance_s, times), 0)


@given(st.integers(1, 30), TIMES)
def test_an_instant_lies_in_exactly_one_tumbling_window(size_s: int, times: list[int]) -> None:
    found, _ = run_windows(windows.tumbling(size_s, grace_s=200), times)
    assert sum(found.values()) == len(times)


@given(st.integers(1, 5), st.integers(0, 5), TIMES)
def test_late_events_are_those_whose_windows_are_all_closed(
    size_s: int, grace_s: int, times: list[int]
) -> None:
    windowing = windows.tumbling(size_s, grace_s)
    on_time = [
        event_ms
        for place, event_ms in enumerate(times)
        if event_ms // (size_s * 1000) * (size_s * 1000) + (size_s + grace_s) * 1000
        > max(times[: place + 1])
    ]
    expected = every_window(size_s, size_s, on_time)
    assert run_windows(windowing, times) == (expected, len(times) - len(on_time))


def test_window_closes_with_its_final_value_when_grace_is_over() -> None:
    windowing = windows.tumbling(10, grace_s=5)
    state = windows.add(windowing, None, 1_000, counting).state
    early = windows.add(windowing, state, 14_999, counting)
    assert early.closed == []
    back = windows.add(windowing, early.state, 9_999, counting)
    over = windows.add(windowing, back.state, 15_000, counting)
    assert over.closed == [(0, 2)]
    late = windows.add(windowing, over.state, 9_999, counting)
    assert (late.is_late, late.state["late"]) == (True, 1)


@pytest.mark.parametrize(("size_s", "advance_s"), [(10, 0), (10, 11)])
def test_windows_with_gaps_between_them_are_refused(size_s: int, advance_s: int) -> None:
    with pytest.raises(AssertionError):
        windows.hopping(size_s, advance_s)


# -- sessions


def run_sessions(times: list[int], gap_ms: int, grace_ms: int) -> tuple[list[list[Any]], int]:
    state: sessions.State | None = None
    closed: list[list[Any]] = []
    for event_ms in times:
        added = sessions.add(
            state, event_ms, 1, gap_ms=gap_ms, grace_ms=grace_ms, merge=lambda a, b: a + b
        )
        state = added.state
        closed += added.closed
    if state is None:
        return [], 0
    return sorted([*closed, *state["open"]]), state["late"]


def every_session(times: list[int], gap_ms: int) -> list[list[int]]:
    found: list[list[int]] = []
    for event_ms in sorted(times):
        if found and event_ms - found[-1][1] <= gap_ms:
            found[-1][1:] = [event_ms, found[-1][2] + 1]
        else:
            found.append([event_ms, event_ms, 1])
    return found


@given(TIMES, st.integers(0, 20_000))
def test_sessions_equal_the_oracle_in_any_order_within_the_grace_period(
    times: list[int], gap_ms: int
) -> None:
    assert run_sessions(times, gap_ms, 200_000) == (every_session(times, gap_ms), 0)


@given(st.lists(st.integers(0, 3_000), max_size=40), st.integers(0, 500), st.integers(0, 500))
def test_no_event_of_a_session_is_lost_or_counted_twice(
    steps: list[int], gap_ms: int, grace_ms: int
) -> None:
    """Events up to `grace_ms` out of order: every one is counted, sessions are the oracle's."""
    clock = itertools.accumulate(steps)
    times = [at - (place * 7919) % (grace_ms + 1) for place, at in enumerate(clock)]
    assert run_sessions(times, gap_ms, grace_ms) == (every_session(times, gap_ms), 0)


def test_event_joins_two_sessions_into_one() -> None:
    assert run_sessions([0, 18, 9], 10, 100) == ([[0, 18, 3]], 0)


def test_event_too_late_for_any_session_is_left_out() -> None:
    assert run_sessions([0, 1_000, 10], 5, 50) == ([[0, 0, 1], [1_000, 1_000, 1]], 1)


# -- joins

ENTRIES = st.lists(
    st.tuples(st.sampled_from(["left", "right"]), st.integers(0, 50_000)), max_size=30
)


@given(ENTRIES, st.integers(0, 20_000))
def test_stream_join_finds_every_pair_once_in_any_order(
    entries: list[tuple[joins.Side, int]], within_ms: int
) -> None:
    join = joins.StreamJoin(within_ms=within_ms, grace_ms=50_000)
    state: joins.State | None = None
    pairs = []
    for number, (side, at_ms) in enumerate(entries):
        joined = joins.join_streams(join, state, side, at_ms, number)
        assert not joined.is_late
        state = joined.state
        pairs += joined.pairs
    expected = [
        (left, right)
        for left, (one, left_ms) in enumerate(entries)
        for right, (other, right_ms) in enumerate(entries)
        if (one, other) == ("left", "right") and abs(left_ms - right_ms) <= within_ms
    ]
    assert sorted(pairs) == sorted(expected)


@given(ENTRIES, st.integers(0, 5_000))
def test_left_record_without_partner_comes_out_alone_once_its_time_is_over(
    entries: list[tuple[joins.Side, int]], within_ms: int
) -> None:
    join = joins.StreamJoin(within_ms=within_ms)
    state: joins.State | None = None
    alone: list[int] = []
    met: set[int] = set()
    for number, (side, at_ms) in enumerate(sorted(entries, key=lambda entry: entry[1])):
        joined = joins.join_streams(join, state, side, at_ms, number)
        state = joined.state
        alone += joined.alone
        met.update(left for left, _ in joined.pairs)
    # A record of much later puts out all that is left.
    last = joins.join_streams(join, state, "right", 1_000_000, -1)
    alone += last.alone
    ordered = sorted(entries, key=lambda entry: entry[1])
    lefts = {number for number, (side, _) in enumerate(ordered) if side == "left"}
    assert sorted(alone) == sorted(lefts - met)


def test_late_record_is_left_out_of_a_join() -> None:
    join = joins.StreamJoin(within_ms=10, grace_ms=5)
    state = joins.join_streams(join, None, "left", 100, "a").state
    assert joins.join_streams(join, state, "right", 84, "b").is_late
    assert joins.join_streams(join, state, "right", 90, "c").pairs == [("a", "c")]


def test_table_join_follows_both_sides_and_their_deletion() -> None:
    row: joins.State | None = None
    seen = []
    for side, value in [("left", 1), ("right", 2), ("left", 3), ("right", None)]:
        row = joins.join_tables(row, side, value, lambda left, right: (left, right))
        seen.append(row["joined"])
    assert seen == [(1, None), (1, 2), (3, 2), (3, None)]
