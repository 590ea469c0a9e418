"""Which windows each range of time has, and where a long time without orders is cut out."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_analytics.serving.series import (
    EVERYTHING,
    GAP_WINDOWS,
    RANGES,
    SIZES_MS,
    Range,
    choose_grain,
    choose_range,
    lay_out,
)

DAY_MS = SIZES_MS["day"]
DECEMBER_MS = 1_291_161_600_000  # 2010-12-01
TODAY_MS = 1_795_392_000_000  # 2026-11-23
DAYS = Range("day", None)


def windows_at(*starts_ms: int) -> list[dict[str, int]]:
    return [{"start_ms": start_ms, "orders": 1} for start_ms in starts_ms]


def starts_of(laid_out: dict[str, list[dict[str, int]]]) -> list[int]:
    return [window["start_ms"] for window in laid_out["windows"]]


def test_range_ends_with_the_newest_order_and_has_every_window() -> None:
    shown = lay_out(windows_at(DECEMBER_MS), RANGES["month"])

    assert starts_of(shown) == [DECEMBER_MS + day * DAY_MS for day in range(-30, 1)]
    assert [window["orders"] for window in shown["windows"]] == [0] * 30 + [1]


def test_order_of_today_leaves_a_month_of_years_ago_its_width() -> None:
    december = [DECEMBER_MS + day * DAY_MS for day in range(23) if day % 7 != 3]
    shown = lay_out(windows_at(*december, TODAY_MS), DAYS)

    # The Saturdays without orders are there, the sixteen years are not.
    assert len(shown["windows"]) == 23 + 1
    (gap,) = shown["gaps"]
    assert (gap["start"], gap["end"]) == ("2010-12-24T00:00:00Z", "2026-11-23T00:00:00Z")
    assert gap["windows"] == (TODAY_MS - DECEMBER_MS) // DAY_MS - 23


def test_what_is_no_longer_than_the_limit_is_no_gap() -> None:
    for empty, gap_count in ((GAP_WINDOWS, 0), (GAP_WINDOWS + 1, 1)):
        shown = lay_out(windows_at(DECEMBER_MS, DECEMBER_MS + (empty + 1) * DAY_MS), DAYS)

        assert len(shown["gaps"]) == gap_count


def test_nothing_is_laid_out_as_nothing() -> None:
    assert lay_out([], RANGES["hour"]) == {"grain": "minute", "windows": [], "gaps": []}


@given(st.sets(st.integers(0, 2_000), min_size=1))
def test_every_window_with_orders_is_shown_once_and_in_order(numbers: set[int]) -> None:
    starts = [number * DAY_MS for number in sorted(numbers)]
    shown = lay_out(windows_at(*starts), DAYS)

    laid_out = starts_of(shown)
    assert all(earlier < later for earlier, later in pairwise(laid_out))
    assert set(starts) <= set(laid_out)
    assert sum(window["orders"] for window in shown["windows"]) == len(starts)
    left_out = sum(gap["windows"] for gap in shown["gaps"])
    assert len(laid_out) + left_out == (starts[-1] - starts[0]) // DAY_MS + 1


def laid_out_of(minutes: int, **orders: int) -> dict[str, Any]:
    """Return ranges with these orders; that of everything has a number of minutes."""
    ranges = {
        name: {"grain": shown.grain, "windows": [{"orders": orders[name]}], "gaps": []}
        for name, shown in RANGES.items()
    }
    return {
        **ranges,
        EVERYTHING: {"grain": "minute", "windows": [{"orders": 1}] * minutes, "gaps": []},
    }


def test_range_shown_first_is_the_shortest_with_most_of_the_orders() -> None:
    assert choose_range(laid_out_of(60, hour=500, day=500, month=500), 500) == "hour"
    assert choose_range(laid_out_of(200, hour=1, day=60, month=900), 1000) == "month"
    assert choose_range(laid_out_of(200, hour=1, day=1, month=1), 1394) == EVERYTHING


@pytest.mark.parametrize(("minutes", "shown"), [(1, EVERYTHING), (29, EVERYTHING), (30, "hour")])
def test_the_first_minutes_are_not_shown_in_an_empty_hour(minutes: int, shown: str) -> None:
    assert choose_range(laid_out_of(minutes, hour=9, day=9, month=9), 9) == shown


def grain_for(minutes: Sequence[int]) -> str:
    def window_starts(grain: str) -> list[int]:
        size = SIZES_MS[grain] // 60_000
        return sorted({minute // size * SIZES_MS[grain] for minute in minutes})

    return choose_grain(window_starts)


def test_everything_is_shown_by_the_smallest_windows_it_has_few_enough_of() -> None:
    assert grain_for([]) == "minute"
    assert grain_for([5, 7]) == "minute"
    assert grain_for(range(300)) == "hour"
    assert grain_for(range(0, 30 * 24 * 60, 30)) == "day"
    assert grain_for(range(0, 900 * 24 * 60, 60)) == "day"
    # Single orders hours apart would be all gaps by the minute.
    assert grain_for(range(0, 60 * 100, 600)) == "hour"
